package reply

import (
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// maxTries bounds how many ends are tried for a piece that may contain its own end mark.
const maxTries = 50

var (
	listMark   = lazy.Regexp(`^(?:[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+)?[ \t]*$`)
	fenceLine  = lazy.Regexp("^[ \t]*(`{3,}|~{3,})[ \t]*([^\r\n]*)")
	tagOnly    = lazy.Regexp(`^[\w+#.-]*[ \t]*$`)
	anyFence   = lazy.Regexp("(?m)^[ \t]*(?:```|~~~)")
	codeInInfo = lazy.Regexp(`^(?:go|golang)?[ \t]*(package[ \t]+\w+)`)
)

// A fenceMark is the opening line of a fenced block.
type fenceMark struct {
	mark, info   string
	indent, body int // of the line; offset at which the block's content begins
}

// fenceAt parses the opening mark of a block: on its own line, in a list, or at the end of a line.
func fenceAt(s string, i int) (fenceMark, bool) {
	open := fenceLine().FindStringSubmatch(s[i:])
	if open == nil || i > 0 && s[i-1] == s[i] || open[1][0] == '`' && strings.Contains(open[2], "`") {
		return fenceMark{}, false
	}
	begin := strings.LastIndexByte(s[:i], '\n') + 1
	f := fenceMark{mark: open[1], info: open[2], indent: i - begin, body: i + len(open[0])}
	if !listMark().MatchString(s[begin:i]) {
		if f.indent = 0; !tagOnly().MatchString(f.info) {
			return fenceMark{}, false
		}
	}
	if c := codeInInfo().FindStringSubmatchIndex(f.info); c != nil {
		f.body += c[2] - len(f.info)
		return f, true
	}
	n := strings.IndexByte(s[f.body:], '\n')
	f.body += n + 1
	return f, n >= 0
}

// fence reads a fenced block. It ends at its first end mark, or at a later one if the program contains the earlier
// marks in its strings. A block that is never closed extends to the end.
func (r *reader) fence(i int) (piece, bool) {
	f, ok := fenceAt(r.s, i)
	if !ok {
		return piece{}, false
	}
	first := piece{end: -1}
	for at, tries := f.body, 0; at < len(r.s) && tries < maxTries && r.work > 0; {
		end := lineEnd(r.s, at)
		stop, alone := closesFence(r.s[at:end], f.mark)
		if stop < 0 {
			at = end
			continue
		}
		p := r.block(i, f, at+stop)
		p.end = end
		c, _ := best(p.candidates)
		if c.rank == rankWhole {
			return p, true
		}
		if first.end < 0 && alone {
			first = p
		}
		at = end
		tries++
	}
	if first.end >= 0 {
		first.literal = len(first.candidates) == 0 && r.closed(f, first.end)
		return first, true
	}
	code := outdent(r.s[f.body:], f.indent)
	c := candidate{form: FormFence, code: code, rank: r.rank(code), at: i, end: len(r.s), open: true}
	if c.rank == rankBroken || c.rank == rankPart {
		r.begun = i
	}
	return piece{end: len(r.s), candidates: []candidate{c}}, c.rank.parses()
}

// closed reports whether a block without a program is certainly a block, and not the text between two others.
func (r *reader) closed(f fenceMark, end int) bool {
	body := r.s[f.body : end-len(f.mark)]
	kind := markNone
	if m := marks().FindString(body); m != "" {
		kind = kindOf(m)
	}
	return (strings.TrimSpace(f.info) != "" || kind == markOpen) &&
		!anyFence().MatchString(body[:max(0, strings.LastIndexByte(body, '\n'))]) && balanced(r.s[end:])
}

func lineEnd(s string, at int) int {
	if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(s)
}

// closesFence returns the position of a block's end mark in a line, or -1, and whether nothing else is on the line.
func closesFence(line, mark string) (at int, alone bool) {
	line = strings.TrimRight(line, " \t\r\n")
	rest := strings.TrimRight(line, mark[:1])
	if len(line)-len(rest) < len(mark) {
		return -1, false
	}
	if strings.TrimSpace(rest) == "" {
		return 0, true
	}
	return len(rest), false
}

// block reads the content of a fence: a program, or a call.
func (r *reader) block(i int, f fenceMark, to int) piece {
	code := outdent(r.s[f.body:to], f.indent)
	c := candidate{form: FormFence, code: code, rank: r.rank(code)}
	if !c.rank.parses() {
		if inner, ok := r.within(code, r.depth+1); ok && inner.rank > c.rank {
			c = inner
		} else if next := unescape(code, jsonEscapes); next != code && r.rank(next) == rankWhole {
			c.code, c.rank = next, rankWhole
		}
	}
	if c.rank == rankNone && c.args == nil {
		return piece{}
	}
	c.at, c.end, c.marked = i, to, c.marked || r.isMarked(i)
	return piece{candidates: []candidate{c}}
}

// outdent removes the fence's own indentation from each line.
func outdent(code string, indent int) string {
	if indent == 0 {
		return code
	}
	var b strings.Builder
	for line := range strings.Lines(code) {
		n := 0
		for n < indent && n < len(line) && (line[n] == ' ' || line[n] == '\t') {
			n++
		}
		b.WriteString(line[n:])
	}
	return b.String()
}

// balanced reports whether all fences of a text are closed.
func balanced(s string) bool {
	open := ""
	for line := range strings.Lines(s) {
		f := fenceLine().FindStringSubmatch(line)
		switch {
		case f == nil:
		case open == "":
			open = f[1]
		default:
			if _, ends := closesFence(line, open); ends {
				open = ""
			}
		}
	}
	return open == ""
}
