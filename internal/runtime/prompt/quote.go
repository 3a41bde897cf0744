package prompt

import (
	"strings"
	"unicode/utf8"
)

// A Quote is a text for prompts, with its owner. What came with a call, and what its programs answered, fetched or
// failed with, is content of the call's owner; others see only its shape. The zero Quote is empty for everybody.
type Quote struct {
	owner  string // "" if the owner is unknown, or the text is public
	public bool
	text   string
	shape  string
}

// Of returns a quote of the owner's text. shape is what other readers see instead: a description without the content,
// or "". If owner is "", everybody sees shape.
func Of(owner, text, shape string) Quote { return Quote{owner: owner, text: text, shape: shape} }

// Public returns a quote that everybody in the namespace may read: the daemon's own words, programs, contracts,
// declared parameters, examples, names of hosts and tools, and operators' remarks on a method.
func Public(text string) Quote { return Quote{public: true, text: text} }

// For returns the text as the given owner may read it.
func (q Quote) For(owner string) string {
	if q.public || q.owner != "" && q.owner == owner {
		return q.text
	}
	return q.shape
}

// A Part is a part of the evidence. Its lines take at most Most bytes in all, so it cannot crowd out other parts.
type Part struct {
	Most  int
	Lines []Quote
}

// shown returns the quotes as the call's owner may read them, without empty ones.
func (in *Input) shown(quotes []Quote) []string {
	var out []string
	for _, q := range quotes {
		if text := q.For(in.Owner); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// failureMessage returns the failure's quotes as the call's owner may read them, joined by line breaks.
func (in *Input) failureMessage() string {
	return strings.TrimSpace(strings.Join(in.shown(in.FailureMessage), "\n"))
}

// evidence renders the parts for the owner, one line for each quote that is not empty.
func evidence(parts []Part, owner string) string {
	var b strings.Builder
	for _, p := range parts {
		left := p.Most
		for _, q := range p.Lines {
			text := q.For(owner)
			if text == "" {
				continue
			}
			line := strings.ToValidUTF8(text, "") + "\n"
			if len(line) <= left {
				left -= len(line)
				b.WriteString(line)
				continue
			}
			if line = clipLine(line, left); line != "" {
				b.WriteString(line)
			}
			break
		}
	}
	return b.String()
}

// clipLine cuts a line to at most n bytes, at a character boundary. It returns "" if too little would be left.
func clipLine(line string, n int) string {
	const least, end = 40, "…\n"
	cut := max(0, n-len(end))
	for cut > 0 && !utf8.RuneStart(line[cut]) {
		cut--
	}
	if cut < least {
		return ""
	}
	return line[:cut] + end
}
