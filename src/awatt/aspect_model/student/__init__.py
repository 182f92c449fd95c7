"""The student: a small transformer that predicts a sentence encoder's token vectors from static ones."""
