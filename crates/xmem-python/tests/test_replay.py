"""Answers about recordings, against what the program prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import xmem
from xmem import _program

TRACE = "traces/mlp_adam/trace.json.zst"
GPT2 = "traces/gpt2_adamw/trace.json.zst"


def test_an_answer_is_that_of_the_program() -> None:
    printed = _program.run(["replay", TRACE, "--device", "rtx3060-12g", "--format", "json"])
    answer = xmem.replay(TRACE, device="rtx3060-12g")
    assert answer.json == json.loads(printed.stdout)
    assert answer.fits and answer.decision == "fits" and answer.device == "rtx3060-12g"
    assert answer.peak_allocated_bytes == answer.json["peak"]["allocated_bytes"]
    assert sum(answer.by_role.values()) == answer.peak_allocated_bytes
    assert answer.device_bytes > answer.peak_device_bytes == answer.need_bytes


def test_a_job_that_does_not_fit_is_an_answer() -> None:
    answer = xmem.replay(TRACE, capacity="300MiB")
    assert (answer.verdict, answer.fits) == ("does_not_fit", False)
    # Tables are of the whole run.
    assert max(row["allocated_bytes"] for row in answer.timeline()) == answer.peak_allocated_bytes


def test_options_are_those_of_the_program() -> None:
    plain = xmem.replay(GPT2, device="a100-40g", cudnn="model")
    kept = xmem.replay(GPT2, device="a100-40g", cudnn="model", set_to_none=False, explain=True)
    assert kept.json["target"]["set_to_none"] is False and plain.json["target"]["set_to_none"] is True
    expandable = xmem.replay(GPT2, device="a100-40g", alloc_conf="expandable_segments:True")
    assert all(segment["expandable"] for segment in expandable.segments() if segment["pool"] == "large")


def test_errors_have_the_words_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(xmem.UsageError, match="a100-40g") as usage:
        xmem.replay(TRACE, device="a100")
    assert (usage.value.code, usage.value.error_code) == (2, "XM0103")
    with pytest.raises(xmem.UsageError, match="unexpected argument '--devic'"):
        xmem.replay(TRACE, devic="a100-40g")
    (tmp_path / "text.json").write_text("not a trace")
    with pytest.raises(xmem.InputError) as unreadable:
        xmem.replay(tmp_path / "text.json", device="a100-40g")
    assert unreadable.value.code == 3
    with pytest.raises(TypeError, match="format"):
        xmem.replay(TRACE, device="a100-40g", format="csv")
    with pytest.raises(xmem.InputError, match="missing.json"):
        xmem.replays(["missing.json", "missing2.json"], device="a100-40g")


def test_errors_may_stand_among_the_answers(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("not a trace")
    text = str(tmp_path / "text.json")
    for traces in ([TRACE, text, GPT2], [text, "missing.json"], [text]):
        answers = xmem.replays(traces, device="a100-40g", errors="return")
        assert len(answers) == len(traces)
        for trace, answer in zip(traces, answers):
            if trace in (TRACE, GPT2):
                assert isinstance(answer, xmem.Replay) and answer.fits
            else:
                assert isinstance(answer, xmem.InputError) and trace in str(answer)
                assert answer.error_code and answer.code == 3
    with pytest.raises(ValueError, match="raise or return"):
        xmem.replays([TRACE], device="a100-40g", errors="ignore")  # type: ignore[call-overload]
    with pytest.raises(xmem.UsageError):
        xmem.replays([TRACE], device="a1000", errors="return")


def test_several_answers_come_in_order_and_have_tables_of_their_own() -> None:
    answers = xmem.replays([TRACE, GPT2], devices=["t4-16g", "a100-40g"], cudnn="model")
    assert [(str(one.trace), one.device) for one in answers] == [
        (TRACE, "t4-16g"), (TRACE, "a100-40g"), (GPT2, "t4-16g"), (GPT2, "a100-40g"),
    ]  # fmt: skip
    for one in answers:
        assert sum(int(row["size_bytes"] or 0) for row in one.segments() if row["end"] is None) > 0
        assert sum(int(row["size_bytes"] or 0) for row in one.blocks() if row["at_peak"]) == one.peak_allocated_bytes
    with pytest.raises(TypeError, match="replays"):
        xmem.replay(TRACE, devices="t4-16g,a100-40g")


def test_tables_are_the_same_in_every_form(tmp_path: Path) -> None:
    blocks = xmem.replay(TRACE, device="rtx3060-12g").blocks()
    assert len(blocks) == len(list(blocks)) == len(blocks[:]) and blocks[0]["block"] == 0
    pyarrow = pytest.importorskip("pyarrow")
    table = blocks.to_arrow()
    assert isinstance(table, pyarrow.Table) and table.to_pylist() == blocks.rows()
    assert table.schema.metadata[b"xmem.schema"] == b"xmem.blocks/1"
    pytest.importorskip("pandas")
    frame = blocks.to_pandas()
    assert frame[frame.at_peak].size_bytes.sum() == 228864000
    blocks.to_parquet(tmp_path / "blocks.parquet")
    assert (tmp_path / "blocks.parquet").read_bytes().startswith(b"PAR1")


def test_the_html_is_whole_and_has_no_markup_of_others() -> None:
    from html.parser import HTMLParser

    answer = xmem.replay(TRACE, device="rtx3060-12g")
    answer.json["summary"] = "<script>alert(1)</script>"
    opened = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("line", "polygon", "polyline"):
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("line", "polygon", "polyline"):
                assert opened.pop() == tag

    html = answer._repr_html_()
    parser = Parser()
    parser.feed(html)
    assert opened == [] and "<script" not in html and "http" not in html
    assert "228864000" not in html and "218.26 MiB" in html


def test_a_page_is_written_for_people(tmp_path: Path) -> None:
    answer = xmem.replay(TRACE, device="rtx3060-12g")
    answer.report(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(xmem.UsageError, match="ending"):
        answer.report(tmp_path / "run.docx")


def test_the_limit_of_fits_counts_the_context() -> None:
    assert xmem.fits(TRACE, "rtx3060-12g", max="450MiB")
    below = xmem.fits(TRACE, "rtx3060-12g", max="449MiB")
    assert not below and below.need_bytes == 450 << 20 and "limit 449.00 MiB" in below.reason
    with pytest.raises(ValueError, match="GiB"):
        xmem.fits(TRACE, "rtx3060-12g", max="many")


def test_the_module_is_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "xmem", "--version"], stdout=subprocess.PIPE, check=True)
    assert done.stdout.startswith(b"xmem ")
