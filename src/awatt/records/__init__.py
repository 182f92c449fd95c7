"""A person's files, in and out: JSONL, CSV, TSV, Parquet and text."""
