package reply

import (
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// Bounds of the search in a reply.
const (
	maxText       = 4 << 20 // bytes of text
	maxNesting    = 8       // levels of texts within texts
	maxCandidates = 200
)

// A candidate is a part of a reply that may be its program.
type candidate struct {
	form    Form
	code    string
	rank    rank
	args    *object // arguments of the call, including code; nil without a call
	name    string  // name of the tool; "" if unknown
	at, end int     // position in the text
	marked  bool    // preceded by a mark of calls
	open    bool    // the text breaks off within it
	twice   bool    // the call gives its code twice, with different values
}

// answered is the result of reading a text.
type answered struct {
	candidates []candidate
	start      int // where the answer begins, after thoughts
	thoughts   thinking
	implied    bool // a call ended the thoughts
	begun      int  // start of a program that never ends; -1 if there is none
}

// A reader searches for candidates and for the end of thoughts in one pass.
type reader struct {
	*finder
	s     string
	depth int
	answered
}

// A piece is a part of the text that is read as a unit. If literal is set, marks within it are part of its strings.
type piece struct {
	end        int
	candidates []candidate
	literal    bool
}

// owns reports whether all marks in the piece's text belong to its program.
func (p *piece) owns(s string) bool {
	all := countMarks(s)
	if all == 0 {
		return true
	}
	for _, c := range p.candidates {
		if own := countMarks(c.code); c.rank.parses() && (own == all || c.args != nil &&
			countMarks(string(encode(c.args))) == all) {
			return true
		}
	}
	return false
}

// read reads a text that a model wrote.
func (f *finder) read(s string, depth int) answered {
	r := &reader{finder: f, s: s, depth: depth}
	f.work -= len(s)
	r.start, r.begun = afterHeading(s), -1
	for i := r.start; i < len(s); {
		i = r.step(i)
	}
	r.finish()
	return r.answered
}

// step reads the piece that begins at i, and returns where to continue.
func (r *reader) step(i int) int {
	switch c := r.s[i]; c {
	case '`', '~':
		return r.take(i, r.fence)
	case '{':
		return r.take(i, r.json)
	case 's', 'S':
		return r.take(i, r.call)
	case 'p', 'i', 'f':
		return r.take(i, r.lines)
	case '<', '[', 't', 0xe2: // 0xe2 is the first byte of ◁
		if kind, n := markAt(r.s, i); kind != markNone {
			r.mark(i, n, kind)
			return i + n
		}
		if c == '<' {
			return r.take(i, r.tags)
		}
	}
	return i + 1
}

// take reads a piece. If the piece contains a mark that does not belong to its program, it is ignored, because thoughts
// contain unfinished drafts.
func (r *reader) take(i int, read func(int) (piece, bool)) int {
	if r.work <= 0 {
		return i + 1
	}
	p, ok := read(i)
	if !ok || !p.literal && !p.owns(r.s[i:p.end]) {
		return i + 1
	}
	if len(r.candidates) < maxCandidates {
		r.candidates = append(r.candidates, p.candidates...)
	}
	return max(p.end, i+1)
}

func (r *reader) mark(at, n int, kind mark) {
	if !quotedMark(r.s, at, at+n) && r.thoughts.see(r.s, at, kind, r.s[at:at+n]) {
		r.start, r.candidates, r.begun = at+n, nil, -1
	}
}

var (
	onlyMarks = lazy.Regexp(`^(?:\s|</?[|｜]?[^<>\s]{1,40}>|\[/?[A-Z_ ]+\])*$`)
	callMark  = lazy.Regexp(`(?:<[^<>\s]{0,20}(?:tool|function|invoke|call|python_tag|ACTION|action)[^<>]{0,80}>|\[TOOL_CALLS?\]|functools|commentary)[^{}\n]{0,100}\s*$`)
)

// finish handles thoughts that never ended. A call in the model's own marks with nothing after it ends them. Otherwise
// there is no answer after them, and one before them counts only if the mark was mentioned within a sentence.
func (r *reader) finish() {
	r.addBare()
	if !r.thoughts.now {
		return
	}
	last := len(r.candidates) - 1
	within := last >= 0 && r.candidates[last].at > r.thoughts.at
	switch {
	case within && r.candidates[last].marked && !r.candidates[last].open &&
		onlyMarks().MatchString(r.s[r.candidates[last].end:]):
		r.candidates, r.implied = r.candidates[last:], true
	case !within && !r.thoughts.lineStart:
	default:
		r.candidates = nil
		return
	}
	r.thoughts.now = false
}

// addBare searches for a program without any mark, if none was found with one.
func (r *reader) addBare() {
	for _, c := range r.candidates {
		if c.rank == rankWhole {
			return
		}
	}
	b, ok := r.bare(r.s[r.start:])
	if !ok || holdsMark(b.code) && !b.rank.parses() || b.rank != rankWhole && len(r.candidates) > 0 {
		return
	}
	b.at, b.end = b.at+r.start, b.end+r.start
	r.candidates = append(r.candidates, b)
}

// lines reads a program that begins at i without any mark.
func (r *reader) lines(i int) (piece, bool) {
	if i > r.start && !strings.ContainsRune("\n>]", rune(r.s[i-1])) ||
		!goLine().MatchString(r.s[i:min(len(r.s), i+100)]) {
		return piece{}, false
	}
	c, ok := r.bare(r.s[i:])
	if !ok || c.rank != rankWhole || c.at > 0 || beginsAsGo(r.s) && needs(c.code, r.s[:i]) {
		return piece{}, false
	}
	from := commentsBefore(r.s, i)
	c.code, c.at, c.end = r.s[from:i]+c.code, from, i+c.end
	return piece{end: c.end, candidates: []candidate{c}}, true
}

// isMarked reports whether a mark of calls precedes a position.
func (r *reader) isMarked(at int) bool {
	return callMark().MatchString(r.s[max(0, at-160):at])
}

// best returns the last of the candidates with the highest rank.
func best(list []candidate) (out candidate, ok bool) {
	for _, c := range list {
		if !ok || c.rank >= out.rank {
			out, ok = c, true
		}
	}
	return out, ok
}
