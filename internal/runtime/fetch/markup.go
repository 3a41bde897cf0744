package fetch

import (
	"slices"
	"strconv"
	"strings"
)

// A tally counts the occurrences of a name in markup.
type tally struct {
	count   int
	repeats bool // the name occurs more than once, or within a list member
}

// tallies maps the names in markup to their counts: elements ("li"), and the classes and ids of each ("li.hit",
// "h1#main").
type tallies map[string]tally

// Bounds of what is examined of one markup text and of what is stored of it.
const (
	maxTallies    = 1024
	maxElements   = 128
	maxMarkupForm = 3 << 10
)

// members are the elements that count as list members wherever they occur.
var members = []string{"dd", "dt", "entry", "item", "li", "option", "td", "tr"}

// A markupScan scans markup of any quality in one pass. It builds no tree, because pages are hostile and warm calls
// fetch them.
type markupScan struct {
	rest   string
	names  tallies
	within string // the outermost open list member; "" if there is none
}

func tallyMarkup(s string) tallies {
	scan := markupScan{rest: s, names: tallies{}}
	for scan.next() {
	}
	return scan.names
}

// next scans the next tag, and returns false at the end. An unclosed construct extends to the end, as in browsers.
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

// after continues after text, or ends the scan if text is missing.
func (s *markupScan) after(text string) (found bool) {
	_, s.rest, found = strings.Cut(s.rest, text)
	return found
}

// name scans the name of a tag. It returns "" if there is no valid name.
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

// attributes scans the rest of a start tag, and reports whether the tag also closes the element.
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
			s.rest = s.rest[1:] // "=" without a name
			continue
		}
		s.attribute(element, name, s.value())
	}
}

// value scans the value of an attribute, and returns "" if it has none.
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

// count counts a name. It ignores long names, and new ones beyond maxTallies.
func (s *markupScan) count(name string) {
	t, known := s.names[name]
	if !known {
		if len(s.names) == maxTallies || len(name) > 128 {
			return
		}
		name = strings.Clone(name) // do not keep the whole body in memory
	}
	t.count++
	t.repeats = t.count > 1 || s.within != "" || t.repeats
	s.names[name] = t
}

// elements returns the sorted names of elements, at most maxElements.
func (t tallies) elements() (names []string) {
	for name := range t {
		if !strings.ContainsAny(name, ".#") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxElements)]
}

// classes returns the sorted names of classes.
func (t tallies) classes() (names []string) {
	for name := range t {
		if _, class, found := strings.Cut(name, "."); found {
			names = append(names, class)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// own splits the class or id off a name: "li" and "hit" for "li.hit", "li" and "" for "li".
func own(name string) (element, class string) {
	if i := strings.IndexAny(name, ".#"); i >= 0 {
		return name[:i], name[i+1:]
	}
	return name, ""
}

// countsFor reports whether a program whose source contains the words uses the name.
func countsFor(name string, words map[string]bool) bool {
	element, class := own(name)
	return class == "" && words[element] || class != "" && words[class]
}

// form returns what is stored for a program whose source contains the words: all elements, and the classes and ids that
// it uses.
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

// readTallies parses a text of form.
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

// earlierTallies parses an outline stored by an earlier version: names without counts, all of which must still be
// there.
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

// keptBy reports whether all names that the program uses are still there. A name that only repeats may be missing if
// its element is missing as well, because a list may be empty, but not if something else has replaced it.
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

// replaced reports whether the carrier of a missing name is still there without it. For a class or id, the carrier is
// its element: there are as many elements as before, or two more than those that never had the name. For an element,
// another element that repeats has appeared.
func (t tallies) replaced(name string, now tallies) bool {
	if element, class := own(name); class != "" {
		all, named := t[element].count, t[name].count
		return all > 0 && now[element].count >= all-named+min(named, 2)
	}
	if len(t.elements()) == maxElements {
		return false // the list of elements may be incomplete
	}
	for name, n := range now {
		if _, known := t[name]; !known && n.repeats && !strings.ContainsAny(name, ".#") {
			return true
		}
	}
	return false
}
