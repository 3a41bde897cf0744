package text

// A Palette colours words, or leaves them as they are.
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

// Status colours a word by what it stands for; other words stay plain.
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
