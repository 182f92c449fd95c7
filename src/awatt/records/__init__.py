"""Reading and writing the user's files: JSONL, CSV, TSV, Parquet and plain text."""
