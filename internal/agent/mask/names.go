package mask

import "strings"

// A match is the verdict on a value by its name.
type match int

const (
	never   match = iota // the name does not matter
	looking              // a secret if it is opaque
	always               // a secret
)

// A pattern is one entry of the list of names.
type pattern struct {
	name string
	how  match
	size int // number of characters that are not separators
}

// newPattern parses a pattern in the syntax of Compile. Separators at its end are dropped.
func newPattern(text string) pattern {
	p := pattern{name: text, how: always}
	if name, ok := strings.CutPrefix(text, "!"); ok {
		p.name, p.how = name, never
	}
	if name, ok := strings.CutSuffix(p.name, "?"); ok && p.how == always {
		p.name, p.how = name, looking
	}
	p.name = strings.TrimRight(p.name, "_-. ")
	for i := range len(p.name) {
		if !separator(p.name[i]) {
			p.size++
		}
	}
	return p
}

// match returns the verdict of the longest pattern that matches the name; of equally long ones, the strictest.
func (r *Rules) match(name []byte) match {
	if r == nil {
		return never
	}
	last := len(name) - 1
	for last >= 0 && separator(name[last]) {
		last--
	}
	if last < 0 {
		return never
	}
	how, size := never, 0
	for i := range r.names[lower(name[last])] {
		p := &r.names[lower(name[last])][i]
		if p.size < size || p.size == size && p.how < how || !endsWith(name, p.name) {
			continue
		}
		how, size = p.how, p.size
	}
	return how
}

// endsWith reports whether the name ends with the words of the pattern. It ignores case and separators, and the match
// must begin at the beginning of a word.
func endsWith(name []byte, pattern string) bool {
	k, n := len(name)-1, len(pattern)-1
	for {
		for k >= 0 && separator(name[k]) {
			k--
		}
		for n >= 0 && separator(pattern[n]) {
			n--
		}
		if n < 0 || k < 0 {
			break
		}
		if lower(name[k]) != lower(pattern[n]) {
			return false
		}
		k, n = k-1, n-1
	}
	if n >= 0 {
		return false
	}
	if k < 0 || separator(name[k+1]) {
		return true
	}
	hump := name[k+1] >= 'A' && name[k+1] <= 'Z'
	return hump && name[k] >= 'a' && name[k] <= 'z'
}

func separator(b byte) bool { return b == '_' || b == '-' || b == ' ' || b == '.' }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
