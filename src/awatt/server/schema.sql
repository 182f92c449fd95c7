-- A project, format 4. A file is opened only if its tables are exactly these, and SQLite checks every row against the
-- constraints: whatever changes here needs a new FORMAT in opening.py, and a way to it from this one.
-- The tables that users change have triggers (created in journal.py) that record how to undo each change.
CREATE TABLE meta (
  name TEXT PRIMARY KEY, value TEXT NOT NULL CHECK (name = 'project' OR value = CAST(CAST(value AS INTEGER) AS TEXT))
) WITHOUT ROWID;
-- Reviews never change: those of the last loads are kept, and `loaded` says which are shown, so undo changes one number.
CREATE TABLE loaded (id INTEGER PRIMARY KEY CHECK (id = 1), load INTEGER NOT NULL CHECK (typeof(load) = 'integer'));
-- The name of the file of each load.
CREATE TABLE loads (
  load INTEGER PRIMARY KEY CHECK (typeof(load) = 'integer'), name TEXT NOT NULL CHECK (typeof(name) = 'text')
);
CREATE TABLE reviews (
  id INTEGER PRIMARY KEY AUTOINCREMENT, fields TEXT NOT NULL CHECK (typeof(fields) = 'text'),
  load INTEGER NOT NULL CHECK (typeof(load) = 'integer'), number INTEGER NOT NULL CHECK (typeof(number) = 'integer')
);
CREATE INDEX reviews_of_load ON reviews (load);
CREATE TABLE sentences (
  id INTEGER PRIMARY KEY AUTOINCREMENT, review INTEGER NOT NULL REFERENCES reviews(id) ON DELETE CASCADE,
  text TEXT NOT NULL CHECK (typeof(text) = 'text')
);
CREATE INDEX sentences_of_review ON sentences (review);
CREATE TABLE aspects (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE CHECK (typeof(name) = 'text'),
  threshold REAL CHECK (threshold BETWEEN 0 AND 1)
);
CREATE TABLE examples (
  id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE CHECK (typeof(text) = 'text'),
  corrected INTEGER NOT NULL CHECK (corrected IN (0, 1)), made INTEGER CHECK (made IS NULL OR typeof(made) = 'integer')
);
CREATE TABLE mentions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, example INTEGER NOT NULL CHECK (typeof(example) = 'integer'),
  aspect INTEGER NOT NULL CHECK (typeof(aspect) = 'integer'), UNIQUE (example, aspect)
);
CREATE INDEX mentions_of_aspect ON mentions (aspect);
CREATE TABLE settings (name TEXT PRIMARY KEY, value REAL CHECK (value BETWEEN 0 AND 1));
-- What each person said of a sentence: the ids of its aspects, as JSON. The example's label is the latest vote.
CREATE TABLE votes (
  id INTEGER PRIMARY KEY AUTOINCREMENT, example INTEGER NOT NULL CHECK (typeof(example) = 'integer'),
  person TEXT NOT NULL CHECK (typeof(person) = 'text'), aspects TEXT NOT NULL CHECK (typeof(aspects) = 'text'),
  UNIQUE (example, person)
);
CREATE TABLE notes (
  id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE CHECK (typeof(text) = 'text'),
  note TEXT NOT NULL CHECK (typeof(note) = 'text')
);
-- Suggested aspects that were dismissed, or accepted as part of another one.
CREATE TABLE dismissed (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE CHECK (typeof(name) = 'text')
);
CREATE TABLE actions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL CHECK (typeof(title) = 'text'),
  undone INTEGER NOT NULL DEFAULT 0 CHECK (undone IN (0, 1))
);
-- What a row was before a change: whether it existed, and the values of its columns after the key.
CREATE TABLE journal (
  id INTEGER PRIMARY KEY AUTOINCREMENT, action INTEGER NOT NULL REFERENCES actions(id) ON DELETE CASCADE,
  changed TEXT NOT NULL CHECK (
    changed IN ('loaded', 'aspects', 'examples', 'mentions', 'settings', 'votes', 'notes', 'dismissed')
  ),
  key NOT NULL, existed INTEGER NOT NULL CHECK (existed = 1 OR existed = 0 AND changed <> 'loaded'), first, second, third
);
CREATE INDEX journal_of_action ON journal (action)
