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

// MaxName is the maximum length of a role or method name, in characters.
const MaxName = 200

// A NameError explains why a role or method name is refused.
type NameError struct {
	Field  string // "role" or "method"
	Reason string
}

func (e *NameError) Error() string { return e.Field + " " + e.Reason }

// Name returns a role or method name in normal form, so that names that look alike are equal. The error is that of
// CheckName.
func Name(field, given string) (string, error) {
	name := NormalForm(given)
	return name, CheckName(field, name)
}

// Names applies Name to a role and a method, in place.
func Names(role, method *string) (err error) {
	if *role, err = Name("role", *role); err == nil {
		*method, err = Name("method", *method)
	}
	return err
}

// NormalForm returns s in Unicode's normal form C. Invalid UTF-8 stays as it is.
func NormalForm(s string) string { return norm.NFC.String(s) }

// OtherForms describes stored names that are not in normal form, which an earlier version accepted. These can be
// listed, read and deleted, but requests by name reach the normalized name.
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

// outerSpace is the reason for refusing a name with leading or trailing Unicode white space.
const outerSpace = "must not begin or end with white space"

// CheckName returns a *NameError if name cannot be a role or a method: it is empty, longer than MaxName characters,
// invalid UTF-8, "." or "..", or contains slashes, control or invisible characters, or leading or trailing white space.
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

// invisible reports whether the character takes no space or changes how others are shown, so that different names could
// look the same: bidirectional controls, zero-width characters, line separators, variation selectors, tags, fillers,
// the blank Braille pattern.
func invisible(r rune) bool {
	return r == '\u2800' || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Identifier returns a name for display in lists. Each character other than letters, digits, marks, "_" and "-" becomes
// "_", and a long name is truncated to 64 characters. A displayed name then cannot be a sentence or contain invisible
// characters.
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

// Quoted returns the whole name: unchanged if it is an identifier, otherwise as a quoted string.
func Quoted(name string) string {
	if name == Identifier(name) {
		return name
	}
	return strconv.Quote(name)
}

// OneLine returns untrusted text for display in lists: one line of at most that many characters, without invisible
// ones.
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

// Seen reports whether the character is visible or a space. Control, invisible, private-use and unassigned characters
// are not.
func Seen(r rune) bool { return unicode.IsGraphic(r) && !invisible(r) }

// CheckStoredName is CheckName without the later rules against invisible characters and outer white space. Names stored
// before those rules can be read and deleted.
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

// TimeFormat is the format of timestamps in records, files and replies: RFC 3339, UTC, milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// FormatTime renders t in TimeFormat.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }
