package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxName is the longest role or method name, in characters.
const MaxName = 200

// A NameError says why a role or method name is refused.
type NameError struct {
	Field  string // "role" or "method"
	Reason string
}

func (e *NameError) Error() string { return e.Field + " " + e.Reason }

// Name returns a role or a method as it is kept: in Unicode's normal form C, so that a name which looks the same is the same. The error is that of CheckName.
func Name(field, given string) (string, error) {
	name := NormalForm(given)
	return name, CheckName(field, name)
}

// Names is Name of a role and a method.
func Names(role, method *string) (err error) {
	if *role, err = Name("role", *role); err == nil {
		*method, err = Name("method", *method)
	}
	return err
}

// NormalForm is a text in Unicode's normal form C. What is not UTF-8 stays as it is.
func NormalForm(s string) string { return norm.NFC.String(s) }

// OtherForms describes the names of a store that are in another form than names are kept in: an earlier version took them as they came. They can be listed,
// read and deleted; requests by name reach the name in normal form.
func OtherForms(names []string) (lines []string) {
	for _, name := range names {
		kept := NormalForm(name)
		if kept == name {
			continue
		}
		beside := "nothing has that name"
		if slices.Contains(names, kept) {
			beside = "which is stored beside it"
		}
		lines = append(lines, fmt.Sprintf(
			"%+q is in another form of Unicode than names are kept in; calls reach %+q, %s", name, kept, beside))
	}
	return lines
}

// outerSpace says why a name is refused that begins or ends with white space, of any kind that Unicode knows.
const outerSpace = "must not begin or end with white space"

// CheckName refuses what cannot be a role or a method: empty, longer than MaxName characters, invalid UTF-8, control
// characters, characters that nobody sees, white space at its ends, slashes, "." and "..". It returns nil or a *NameError.
func CheckName(field, name string) error {
	if err := CheckStoredName(field, name); err != nil {
		return err
	}
	if strings.TrimSpace(name) != name {
		return &NameError{Field: field, Reason: outerSpace}
	}
	if strings.ContainsFunc(name, invisible) {
		return &NameError{Field: field,
			Reason: "must not contain invisible characters, such as those that change the direction of text"}
	}
	return nil
}

// invisible reports whether the character takes no place or changes how others are shown, so that two names look the same:
// bidirectional controls, zero-width characters, separators of lines, variation selectors, tags, fillers, the Braille pattern without dots.
func invisible(r rune) bool {
	return r == '\u2800' || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Identifier is a name as lists show it: each character but letters, digits, marks, "_" and "-" is "_", and of a long one the beginning is
// shown. What stands for a name in a list can then be no sentence, and nothing that nobody sees.
func Identifier(name string) string {
	shown := []rune(strings.Map(func(r rune) rune {
		if r == '-' || !invisible(r) && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) {
			return r
		}
		return '_'
	}, name))
	const most = 64
	if len(shown) > most {
		return string(shown[:most-1]) + "…"
	}
	return string(shown)
}

// Quoted returns the whole name: an identifier as it is, any other name as a quoted string.
func Quoted(name string) string {
	if name == Identifier(name) {
		return name
	}
	return strconv.Quote(name)
}

// OneLine is text of strangers as lists show it: one line of at most so many characters, without those that nobody sees.
func OneLine(text string, most int) string {
	line := []rune(strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case Seen(r):
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))), " "))
	if len(line) > most {
		return string(line[:most-1]) + "…"
	}
	return string(line)
}

// Seen reports whether the character is one that people see, or a blank: no control character, none that has no place or turns the direction of
// others, none of private use and none that Unicode does not know.
func Seen(r rune) bool { return unicode.IsGraphic(r) && !invisible(r) }

// CheckStoredName is CheckName for what may have been stored before names with invisible characters, or with white space at their ends, were refused: it
// can be looked at and taken away.
func CheckStoredName(field, name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "must not be empty"
	case !utf8.ValidString(name):
		reason = "must be valid UTF-8"
	case utf8.RuneCountInString(name) > MaxName:
		reason = fmt.Sprintf("must have at most %d characters", MaxName)
	case name == "." || name == "..":
		reason = `must not be "." or ".."`
	case strings.ContainsAny(name, `/\`):
		reason = "must not contain slashes"
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }):
		reason = "must not contain control characters"
	case strings.TrimSpace(name) == "":
		reason = "must not be blank"
	}
	if reason == "" {
		return nil
	}
	return &NameError{Field: field, Reason: reason}
}

// TimeFormat is how timestamps stand in records, files and replies: RFC 3339, UTC, milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// FormatTime renders t in TimeFormat.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }
