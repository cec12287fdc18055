//! Text from strangers, for a terminal.

/// The text with everything that a terminal would obey, or that shows other words than are there,
/// written as escapes: control characters, marks that reorder text, characters without width and
/// other line ends. With `keep_lines`, `\n` and `\t` stay.
///
/// ```
/// use agentix_reference_host::terminal::visible;
/// assert_eq!(visible("a\u{1b}[31m\u{202e}b\n", false), r"a\u{1b}[31m\u{202e}b\n");
/// ```
pub fn visible(text: &str, keep_lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (keep_lines && matches!(c, '\n' | '\t')) || !is_hidden(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    out
}

/// Whether a terminal shows something else than this character.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn nothing_but_words_reaches_the_terminal() {
        let hostile =
            "\u{1b}[31mred\u{1b}]0;title\u{7}\r\nagentix-host: all good\u{202e}\u{200b}\u{2028}";
        let shown = visible(hostile, false);
        assert!(!shown.contains(|c: char| {
            c.is_control() || matches!(c, '\u{202e}' | '\u{200b}' | '\u{2028}')
        }));
        assert!(shown.contains("red") && shown.contains("all good"));
        assert_eq!(
            visible("a\n\tb é 語 \u{1f600}", true),
            "a\n\tb é 語 \u{1f600}"
        );
        assert_eq!(visible("a\nb", false), "a\\nb");
    }
}
