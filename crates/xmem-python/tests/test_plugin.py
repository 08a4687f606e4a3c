"""The marker `gpu_memory`, in tests of its own."""

from __future__ import annotations

import pytest

TESTS = """
import pytest

def train(width, steps=3):
    import torch
    model = torch.nn.Linear(width, width).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, width, device="cuda")).sum().backward()
        optimizer.step()

@pytest.fixture
def width():
    return 512

@pytest.mark.gpu_memory(device="t4-16g", max="1GiB")
def test_within(width, tmp_path):
    train(width)

@pytest.mark.gpu_memory(device="t4-16g", max="300MiB")
@pytest.mark.parametrize("wide", [4096])
def test_beyond(wide):
    train(wide)

@pytest.mark.gpu_memory(device="t4-16g", engine="cpu")
def test_on_the_cpu():
    train(256, steps=60)

@pytest.mark.gpu_memory(device="t4-16g")
def test_wrong():
    train(64)
    assert 1 == 2

@pytest.mark.gpu_memory
def test_device_of_the_settings(width):
    train(width)

@pytest.mark.gpu_memory(device="t4-16g")
def test_skips_itself():
    pytest.skip("not today")

def test_plain():
    pass
"""


@pytest.fixture
def tests(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with tests that train."""
    pytester.makeini("[pytest]\ngpu_memory_device = rtx3060-12g\n")
    pytester.makepyfile(TESTS)
    return pytester


@pytest.mark.torch
def test_the_body_of_a_test_is_recorded_and_judged(tests: pytest.Pytester) -> None:
    result = tests.runpytest_subprocess("-p", "xmem.pytest_plugin", "-rA", "--strict-markers")
    result.assert_outcomes(passed=4, failed=2, skipped=1)
    result.stdout.fnmatch_lines_random(
        [
            "PASSED *::test_within",
            "PASSED *::test_on_the_cpu",
            "PASSED *::test_device_of_the_settings",
            "gpu_memory: needs * of 14.58 GiB on t4-16g, limit 300.00 MiB",
            "  optimizer state * MiB",
            "*assert 1 == 2",
            "SKIPPED * not today",
        ]
    )


def test_wrong_markers_and_skipped_tests_record_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.gpu_memory(devic="t4-16g")
        def test_typo():
            pass

        @pytest.mark.gpu_memory()
        def test_no_device():
            pass

        @pytest.mark.gpu_memory(device="t4-16g", max="lots")
        def test_size():
            pass

        @pytest.mark.skip(reason="later")
        @pytest.mark.gpu_memory(device="t4-16g")
        def test_later():
            pass
        """
    )
    result = pytester.runpytest_subprocess("-p", "xmem.pytest_plugin", "-rs")
    result.assert_outcomes(failed=3, skipped=1)
    result.stdout.fnmatch_lines_random(["*does not know devic*", "*needs a device*", "*`lots` is no size*", "*later"])
