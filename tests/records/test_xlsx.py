"""Excel files: the cells of the first sheet, dates, and files made to do harm."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from awatt.errors import AwattError
from awatt.records.bounds import Bounds, Meter
from awatt.records.xlsx import xlsx_to_jsonl

NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATED = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
PARTS = {
    "xl/workbook.xml": f"""<workbook {NAMESPACE} {RELATED}><sheets>
      <sheet name="old" sheetId="3" state="hidden" r:id="rId9"/>
      <sheet name="Reviews" sheetId="1" r:id="rId1"/></sheets></workbook>""",
    "xl/_rels/workbook.xml.rels": """<Relationships><Relationship Id="rId9" Target="worksheets/sheet9.xml"/>
      <Relationship Id="rId1" Target="/xl/worksheets/sheet1.xml"/></Relationships>""",
    "xl/sharedStrings.xml": f"""<sst {NAMESPACE}><si><t>text</t></si><si><t>stars</t></si>
      <si><r><t>Good </t></r><r><rPr><b/></rPr><t>soup &amp; bread</t></r><rPh><t>x</t></rPh></si></sst>""",
    "xl/styles.xml": f"""<styleSheet {NAMESPACE}><numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy"/>
      <numFmt numFmtId="165" formatCode="0.0&quot; days&quot;"/></numFmts>
      <cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
      <cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="22"/><xf numFmtId="165"/></cellXfs></styleSheet>""",
    "xl/worksheets/sheet1.xml": f"""<worksheet {NAMESPACE}><sheetData>
      <row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="inlineStr"><is><t>day</t></is></c>
        <c r="D1" t="str"><v>text</v></c><c r="E1" t="inlineStr"><is><t>length</t></is></c></row>
      <row r="2"><c r="A2" t="s"><v>2</v></c><c r="B2"><v>5</v></c><c r="C2" s="1"><v>45443</v></c>
        <c r="D2" t="b"><v>1</v></c><c r="E2" s="3"><v>1.5</v></c></row>
      <row r="3"><c r="A3" t="s"/></row>
      <row r="4"><c r="C4" s="2"><v>45443.75</v></c><c r="A4" t="inlineStr"><is><t>Bad.</t></is></c>
        <c r="B4" t="e"><v>#N/A</v></c><c r="E4" s="1"><v>99999999</v></c></row>
      </sheetData></worksheet>""",
}


def meter(size: int = 10**6) -> Meter:
    return Meter(Bounds(rows=1000, bytes=size, seconds=60), AwattError)


def pack(**changed: str | None) -> bytes:
    parts: dict[str, Any] = {**PARTS, **{f"xl/{name.replace('__', '/')}.xml": text for name, text in changed.items()}}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            if text is not None:
                archive.writestr(name, text)
    return out.getvalue()


def test_the_first_visible_sheet_is_read_with_its_texts_numbers_and_dates() -> None:
    rows = [json.loads(line) for line in xlsx_to_jsonl(pack(), meter()).splitlines()]
    assert rows == [
        {"text": "Good soup & bread", "stars": 5, "day": "2024-05-31", "text 2": True, "length": 1.5},
        {"text": "Bad.", "stars": None, "day": "2024-05-31 18:00:00", "text 2": None, "length": 99999999},
    ]
    assert len(xlsx_to_jsonl(pack(), meter(), most_rows=1).splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK no zip", "damaged, protected by a password, or no workbook"),
        (pack(workbook=None), "no workbook"),
        (pack(workbook=f"<workbook {NAMESPACE}/>"), "it has no sheet"),
        (pack(sharedStrings=f"<sst {NAMESPACE}/>"), "there is no text 0"),
        (pack(worksheets__sheet1="<worksheet><row>"), "no element found"),
        (pack(worksheets__sheet1='<worksheet><row><c s="x"><v>1</v></c></row></worksheet>'), "invalid literal"),
        (pack(sharedStrings='<!DOCTYPE a [<!ENTITY b "b">]><sst><si><t>&b;</t></si></sst>'), "a document type"),
        (pack()[:-200], "damaged"),
        (pack(sharedStrings=f"<sst>{'<t>x' * 10**5}"), "more than 100 elements are nested"),
    ],
)
def test_other_files_are_refused_in_words(content: bytes, message: str) -> None:
    with pytest.raises(AwattError, match=message) as caught:
        xlsx_to_jsonl(content, meter())
    assert "\n" not in str(caught.value)


def cells(*texts: str | None) -> str:
    """A row with these texts; None leaves a cell out."""
    written = [
        f'<c r="{"ABCDEF"[place]}1" t="str"><v>{text}</v></c>' for place, text in enumerate(texts) if text is not None
    ]
    return f"<row>{''.join(written)}</row>"


def test_data_in_a_column_without_a_name_is_not_dropped() -> None:
    sheet = [("text", None, "column 4"), ("Good. }",), ("Bad.", "}", "x"), ("So.", None, None, "late"), ("End.",)]
    content = pack(worksheets__sheet1=f"<s>{''.join(cells(*row) for row in sheet)}</s>")
    lines = xlsx_to_jsonl(content, meter()).splitlines()
    assert [list(json.loads(line).items()) for line in lines] == [
        [("text", "Good. }"), ("column 4", None), ("column 2", None), ("column 4 2", None)],
        [("text", "Bad."), ("column 4", "x"), ("column 2", "}"), ("column 4 2", None)],
        [("text", "So."), ("column 4", None), ("column 2", None), ("column 4 2", "late")],
        [("text", "End."), ("column 4", None), ("column 2", None), ("column 4 2", None)],
    ]
    (first,) = xlsx_to_jsonl(content, meter(), most_rows=1).splitlines()
    assert json.loads(first) == {"text": "Good. }", "column 4": None}


def test_a_phonetic_guide_of_a_cell_is_read_as_text() -> None:
    guide = '<rPh sb="0" eb="2"><t>トウキョウ</t></rPh><phoneticPr fontId="1"/>'
    place = f'<row><c t="inlineStr"><is><t>東京</t>{guide}</is></c><c t="inlineStr"><is><t>a</t></is></c></row>'
    content = pack(worksheets__sheet1=f"<worksheet><sheetData>{cells('text', 'more')}{place}</sheetData></worksheet>")
    assert json.loads(xlsx_to_jsonl(content, meter())) == {"text": "東京", "more": "a"}


def test_many_columns_without_a_name_in_the_last_row_are_stopped() -> None:
    short, wide = "<row><c><v>1</v></c></row>" * 900, "<c><v>1</v></c>" * 300
    with pytest.raises(AwattError, match="more than 1,000,000 bytes"):
        xlsx_to_jsonl(pack(worksheets__sheet1=f"<s>{short}<row>{wide}</row></s>"), meter())


def test_a_small_file_that_becomes_large_is_stopped() -> None:
    long = pack(sharedStrings=f"<sst {NAMESPACE}><si><t>{'x' * 10**7}</t></si></sst>")
    assert len(long) < 30_000
    with pytest.raises(AwattError, match="more than 1,000,000 bytes"):
        xlsx_to_jsonl(long, meter())
    wide = "".join("<c><v>1</v></c>" for _ in range(5000))
    many = "<row><c><v>1</v></c></row>" * 500  # each becomes an object of 5,000 columns
    with pytest.raises(AwattError, match="more than 1,000,000 bytes"):
        xlsx_to_jsonl(pack(worksheets__sheet1=f"<s><row>{wide}</row>{many}</s>"), meter())
    with pytest.raises(AwattError, match="more than 1,000 rows"):
        xlsx_to_jsonl(pack(worksheets__sheet1=f"<s>{'<row><c><v>1</v></c></row>' * 1200}</s>"), meter())
