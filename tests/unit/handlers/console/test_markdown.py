"""Markdown of a memory as a person reads it: the rendered parts, and that nothing of it gets out."""

import re
import time

import pytest

from handlers.console.markdown import markdown


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# Ports", '<p class="heading">Ports</p>'),
        (
            "One **bold**, *slanted*, `c*o*de`.",
            "<p>One <strong>bold</strong>, <em>slanted</em>, <code>c*o*de</code>.</p>",
        ),
        ("a\nb\n\nc", "<p>a\nb</p><p>c</p>"),
        ("- one\n  - two", '<ul><li>one</li><li class="depth1">two</li></ul>'),
        (
            "1. one\n  - part\n2. two",
            '<ol start="1"><li>one</li></ol><ul><li class="depth1">part</li></ul><ol start="2"><li>two</li></ol>',
        ),
        ("- [ ] to do\n- [x] done", "<ul><li>\u2610 to do</li><li>\u2611 done</li></ul>"),
        ("3. three\n4. four", '<ol start="3"><li>three</li><li>four</li></ol>'),
        ("> said\n> again", "<blockquote>said\nagain</blockquote>"),
        ("---", "<hr>"),
        (
            "| a | b |\n|---|:-:|\n| 1 | `2` |",
            '<table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
            "<tbody><tr><td>1</td><td><code>2</code></td></tr></tbody></table>",
        ),
        (
            "```sh\n# no <b>heading</b>\n```\nafter",
            "<pre><code># no &lt;b&gt;heading&lt;/b&gt;</code></pre><p>after</p>",
        ),
        ("```\nnever closed", "<pre><code>never closed</code></pre>"),
        (
            "See [the page](https://example.org/a?b=1&c=2).",
            '<p>See the page <span class="dim">(https://example.org/a?b=1&amp;c=2)</span>.</p>',
        ),
        (
            "[a] [b]c](d) [](e) [f](",
            '<p>[a] b]c <span class="dim">(d)</span> [](e) [f](</p>',
        ),
        ("2 * 3 * 4 and snake_case_name", "<p>2 * 3 * 4 and snake_case_name</p>"),
    ],
)
def test_markdown_is_rendered(text: str, html: str) -> None:
    assert markdown(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<b>)",
        '[x](https://a.example/"onclick="alert(1))',
        "![x](//evil.example/pixel)",
        "[x](https://user@evil.example)",
        "**<img src=x onerror=alert(1)>**",
        "| <b> |\n|---|\n| <i> |",
        "# <svg onload=alert(1)>",
        "`</code><script>`",
        "```\n</pre><script>\n```",
        "[bank.example](https://evil.example)",
    ],
)
def test_no_element_or_attribute_comes_from_the_text(text: str) -> None:
    html = markdown(text)
    elements = set(re.findall(r"<([a-z]+)", html))
    assert elements <= {"p", "span", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "pre"}
    assert set(re.findall(r"<[a-z]+ ([^>]*)>", html)) <= {'class="dim"', 'class="heading"', 'scope="col"'}


def test_a_hidden_character_is_shown_by_its_number() -> None:
    assert markdown("a\u202eb **c\u200bd**") == "<p>a\u27e8U+202E\u27e9b <strong>c\u27e8U+200B\u27e9d</strong></p>"


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["*", "**", "`", "[", "[](", "](", "[a](b", "|", "|-", "> ", "- ", "#", "_", "a*", "**a"]
)
def test_no_text_takes_long(unit: str) -> None:
    for size in (20_000, 200_000):
        for text in (
            unit * (size // len(unit)),
            f"{unit}\n" * (size // len(unit)),
            unit * (size // len(unit)) + "](x)",
        ):
            began = time.thread_time()
            assert len(markdown(text)) < 10 * size
            assert time.thread_time() - began < 0.2


def test_a_text_of_which_the_page_would_be_long_is_shown_as_it_is() -> None:
    assert markdown("- a\n" * 5000).startswith("<pre>- a\n- a\n")
