// The format of a file, from its name.

const FORMATS = { csv: "csv", tsv: "tsv", tab: "tsv", jsonl: "jsonl", ndjson: "jsonl", json: "json", parquet: "parquet", txt: "txt", xlsx: "xlsx" };
const UNZIPPED = ["json", "xlsx"]; // read only as they are

export function formatOf(name) {
  const parts = name.toLowerCase().split("."), zipped = parts.at(-1) === "gz";
  if (zipped) parts.pop();
  const format = Object.hasOwn(FORMATS, parts.at(-1)) ? FORMATS[parts.at(-1)] : null;
  return format && !(zipped && UNZIPPED.includes(format)) ? format + (zipped ? ".gz" : "") : null;
}
