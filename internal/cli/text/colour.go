package text

// A Palette colours text when it is true, and returns it unchanged when it is false.
type Palette bool

// Styles of a palette: parameters of SGR sequences, in the 16 colours that each terminal has.
const (
	Good  = "32"
	Warn  = "33"
	Bad   = "31"
	Faint = "2"
	Bold  = "1"
	Live  = "36"
)

// Paint puts the style around the text.
func (p Palette) Paint(style, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// Status colours text by the meaning of the word; text of other words is returned unchanged.
func (p Palette) Status(word, text string) string {
	switch word {
	case "ok", "equal":
		return p.Paint(Good, text)
	case "warn", "running":
		return p.Paint(Warn, text)
	case "error", "fail", "differs":
		return p.Paint(Bad, text)
	}
	return text
}
