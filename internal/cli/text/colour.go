package text

// A Palette colours text if it is true, and returns it unchanged otherwise.
type Palette bool

// Styles of a palette: SGR parameters from the 16 colours of every terminal.
const (
	Good  = "32"
	Warn  = "33"
	Bad   = "31"
	Faint = "2"
	Bold  = "1"
	Live  = "36"
)

// Paint applies the style to the text.
func (p Palette) Paint(style, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// Status colours text according to a status word. Text for other words stays unchanged.
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
