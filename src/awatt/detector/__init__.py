"""What the detector is made of: examples, rules, words, saved folders, advice, and files in bulk."""
