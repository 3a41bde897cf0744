package fetch

import (
	"slices"
	"strconv"
	"strings"
)

// A tally counts a name of a markup text.
type tally struct {
	count   int
	repeats bool // it occurs more than once, or within a member of a list
}

// tallies are the names of a markup text: elements ("li"), and the classes and ids of each ("li.hit", "h1#main").
type tallies map[string]tally

// Bounds of what is looked at of one markup text, and of what is remembered of it.
const (
	maxTallies    = 1024
	maxElements   = 128
	maxMarkupForm = 3 << 10
)

// members are the elements that are members of a list wherever they occur.
var members = []string{"dd", "dt", "entry", "item", "li", "option", "td", "tr"}

// A markupScan walks once over markup of any quality. It keeps no tree: pages are hostile, and fetched by warm calls.
type markupScan struct {
	rest   string
	names  tallies
	within string // the outermost member of a list that is open; "" for none
}

func tallyMarkup(s string) tallies {
	scan := markupScan{rest: s, names: tallies{}}
	for scan.next() {
	}
	return scan.names
}

// next passes the next tag, and returns false at the end. What is never closed reaches to the end, as browsers have it.
func (s *markupScan) next() bool {
	i := strings.IndexByte(s.rest, '<')
	if i < 0 {
		return false
	}
	s.rest = s.rest[i+1:]
	if strings.HasPrefix(s.rest, "!--") {
		return s.after("-->")
	}
	name, ends := s.name()
	switch {
	case name == "":
	case ends && name == s.within:
		s.within = ""
	case !ends:
		if s.within == "" && slices.Contains(members, name) {
			s.within = name
		}
		s.count(name)
		closed := s.attributes(name)
		if !closed && (name == "script" || name == "style") {
			return s.after("</" + name)
		}
		if closed && name == s.within {
			s.within = ""
		}
	}
	return true
}

// after goes on behind the text, which ends the scan where it is missing.
func (s *markupScan) after(text string) (found bool) {
	_, s.rest, found = strings.Cut(s.rest, text)
	return found
}

// name passes the name of a tag: "" for what is none.
func (s *markupScan) name() (name string, ends bool) {
	if ends = strings.HasPrefix(s.rest, "/"); ends {
		s.rest = s.rest[1:]
	}
	end := strings.IndexFunc(s.rest, func(r rune) bool {
		return !(r == ':' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
	if end <= 0 || end >= 64 || s.rest[0] < 'A' {
		return "", ends
	}
	name, s.rest = strings.ToLower(s.rest[:end]), s.rest[end:]
	return name, ends
}

// attributes passes the rest of a start tag, and reports whether it closes the element as well.
func (s *markupScan) attributes(element string) (closed bool) {
	for {
		s.rest = strings.TrimLeft(s.rest, " \t\r\n\f")
		closes := strings.HasPrefix(s.rest, "/")
		if closes {
			s.rest = s.rest[1:]
		}
		if s.rest == "" {
			return false
		}
		if s.rest[0] == '>' {
			s.rest = s.rest[1:]
			return closes
		}
		end := strings.IndexAny(s.rest, " \t\r\n\f/>=")
		if end < 0 {
			s.rest = ""
			return false
		}
		name := s.rest[:end]
		if s.rest = s.rest[end:]; end == 0 && s.rest[0] == '=' {
			s.rest = s.rest[1:] // no name
			continue
		}
		s.attribute(element, name, s.value())
	}
}

// value passes the value of an attribute, "" where it has none.
func (s *markupScan) value() (value string) {
	at := strings.TrimLeft(s.rest, " \t\r\n\f")
	if !strings.HasPrefix(at, "=") {
		return ""
	}
	s.rest = strings.TrimLeft(at[1:], " \t\r\n\f")
	if s.rest != "" && (s.rest[0] == '"' || s.rest[0] == '\'') {
		value, s.rest, _ = strings.Cut(s.rest[1:], s.rest[:1])
		return value
	}
	end := strings.IndexAny(s.rest, " \t\r\n\f>")
	if end < 0 {
		end = len(s.rest)
	}
	value, s.rest = s.rest[:end], s.rest[end:]
	return value
}

func (s *markupScan) attribute(element, name, value string) {
	switch {
	case strings.EqualFold(name, "class"):
		for class := range strings.FieldsSeq(value) {
			s.count(element + "." + class)
		}
	case strings.EqualFold(name, "id") && value != "" && !strings.ContainsAny(value, " \t\r\n\f"):
		s.count(element + "#" + value)
	}
}

func (s *markupScan) count(name string) {
	t, known := s.names[name]
	if !known {
		if len(s.names) == maxTallies || len(name) > 128 {
			return
		}
		name = strings.Clone(name) // of a body that the call does not keep
	}
	t.count++
	t.repeats = t.count > 1 || s.within != "" || t.repeats
	s.names[name] = t
}

// elements lists the names of the elements, sorted.
func (t tallies) elements() (names []string) {
	for name := range t {
		if !strings.ContainsAny(name, ".#") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxElements)]
}

// classes lists the names of the classes, sorted.
func (t tallies) classes() (names []string) {
	for name := range t {
		if _, class, found := strings.Cut(name, "."); found {
			names = append(names, class)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// own splits off the class or id of a name: "li" and "hit" of "li.hit", "li" and "" of "li".
func own(name string) (element, class string) {
	if i := strings.IndexAny(name, ".#"); i >= 0 {
		return name[:i], name[i+1:]
	}
	return name, ""
}

// countsFor reports whether a program whose text has those words names it.
func countsFor(name string, words map[string]bool) bool {
	element, class := own(name)
	return class == "" && words[element] || class != "" && words[class]
}

// form is what is remembered for a program whose text has those words: all elements, and the classes and ids that it names.
func (t tallies) form(words map[string]bool) string {
	var named []string
	for name := range t {
		if _, class := own(name); class != "" && words[class] {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	names := append(t.elements(), named...)
	var b strings.Builder
	for _, name := range names {
		if b.Len()+len(name)+8 > maxMarkupForm {
			break
		}
		b.WriteByte(' ')
		b.WriteString(name)
		if n := t[name]; n.repeats {
			b.WriteByte('*')
			b.WriteString(strconv.Itoa(n.count))
		}
	}
	return b.String()
}

// readTallies reads a text of form.
func readTallies(text string) tallies {
	t := tallies{}
	for name := range strings.FieldsSeq(text) {
		if i := strings.LastIndexByte(name, '*'); i > 0 {
			if n, err := strconv.Atoi(name[i+1:]); err == nil {
				t[name[:i]] = tally{n, true}
				continue
			}
		}
		t[name] = tally{count: 1}
	}
	return t
}

// earlierTallies reads an outline of what an earlier version remembered: names without counts, of which each has to be there.
func earlierTallies(outline string) tallies {
	t := tallies{}
	elements, classes, _ := strings.Cut(outline, "; classes ")
	for name := range strings.FieldsSeq(strings.TrimPrefix(elements, "elements ")) {
		t[name] = tally{count: 1}
	}
	for name := range strings.FieldsSeq(classes) {
		t["."+name] = tally{count: 1}
	}
	if len(outline) >= maxOutline-3 { // the last name may have been cut
		last := outline[strings.LastIndexByte(outline, ' ')+1:]
		delete(t, last)
		delete(t, "."+last)
	}
	return t
}

// keptBy reports whether all names that count are still there. Those that only repeat may be absent where their elements are, since a list may be
// empty; they may not where others stand in their place.
func (t tallies) keptBy(now tallies, words map[string]bool) bool {
	present := map[string]bool{}
	for name := range now {
		element, class := own(name)
		if present[element] = true; class != "" {
			present[name[len(element):]] = true
		}
	}
	for name, was := range t {
		element, class := own(name)
		there := present[element]
		if class != "" {
			there = present[name[len(element):]]
		}
		if !there && countsFor(name, words) && (!was.repeats || t.replaced(name, now)) {
			return false
		}
	}
	return true
}

// replaced reports whether what carried the name is there without it. Of a class or id these are its elements: as many as before, or two more than
// those that never had it. Of an element, others repeat that were not there.
func (t tallies) replaced(name string, now tallies) bool {
	if element, class := own(name); class != "" {
		all, named := t[element].count, t[name].count
		return all > 0 && now[element].count >= all-named+min(named, 2)
	}
	if len(t.elements()) == maxElements {
		return false // there may have been more
	}
	for name, n := range now {
		if _, known := t[name]; !known && n.repeats && !strings.ContainsAny(name, ".#") {
			return true
		}
	}
	return false
}
