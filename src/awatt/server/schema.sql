-- A project. The tables that users change have triggers (created in journal.py) that record how to undo each change.
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- Reviews never change: those of the last loads are kept, and `loaded` says which are shown, so undo changes one number.
CREATE TABLE IF NOT EXISTS loaded (id INTEGER PRIMARY KEY, load INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS reviews (
  id INTEGER PRIMARY KEY AUTOINCREMENT, fields TEXT NOT NULL, load INTEGER NOT NULL, number INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS reviews_of_load ON reviews (load);
CREATE TABLE IF NOT EXISTS sentences (
  id INTEGER PRIMARY KEY AUTOINCREMENT, review INTEGER NOT NULL REFERENCES reviews(id) ON DELETE CASCADE, text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS sentences_of_review ON sentences (review);
CREATE TABLE IF NOT EXISTS aspects (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, threshold REAL);
CREATE TABLE IF NOT EXISTS examples (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE, corrected INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS mentions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, example INTEGER NOT NULL, aspect INTEGER NOT NULL, UNIQUE (example, aspect)
);
CREATE INDEX IF NOT EXISTS mentions_of_aspect ON mentions (aspect);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS actions (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, undone INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS journal (
  id INTEGER PRIMARY KEY AUTOINCREMENT, action INTEGER NOT NULL REFERENCES actions(id) ON DELETE CASCADE, statement TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS journal_of_action ON journal (action);
