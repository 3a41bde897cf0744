package prompt

import (
	"strings"
	"unicode/utf8"
)

// A Quote is a text that a prompt may hold, and whose it is. What came with a call, and what its programs answered, fetched or failed with, is
// content for the owner of the call; to others only its shape is shown. The zero Quote says nothing.
type Quote struct {
	owner  string // "" of nobody's, and of what is public
	public bool
	text   string
	shape  string
}

// Of returns a text of the owner's, "" where that is not known, and what others may read in its place: words without its content, or nothing.
func Of(owner, text, shape string) Quote { return Quote{owner: owner, text: text, shape: shape} }

// Public returns a text that everybody in the namespace may read: our own words, programs, contracts, declared parameters, examples, names of hosts
// and tools, and what people who may operate say of a method.
func Public(text string) Quote { return Quote{public: true, text: text} }

// For returns what the owner may read.
func (q Quote) For(owner string) string {
	if q.public || q.owner != "" && q.owner == owner {
		return q.text
	}
	return q.shape
}

// A Part is a part of the evidence: lines that together take at most Most bytes, so that none crowds out another part.
type Part struct {
	Most  int
	Lines []Quote
}

// shown are the quotes as the call's owner may read them, without those that say nothing then.
func (in *Input) shown(quotes []Quote) []string {
	var out []string
	for _, q := range quotes {
		if text := q.For(in.Owner); text != "" {
			out = append(out, text)
		}
	}
	return out
}

func (in *Input) failureMessage() string {
	return strings.TrimSpace(strings.Join(in.shown(in.FailureMessage), "\n"))
}

// evidence renders the parts for the owner, a line for each quote that says something.
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

// clipLine cuts a line to at most n bytes, at a character's edge; "" where too little would be left of it.
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
