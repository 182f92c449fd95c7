"""Reading and writing: records (any user's file), FewAsp's files, how FewAsp is built, and episodes."""
