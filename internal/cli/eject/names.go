package eject

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
)

// maxDirName bounds the readable part of a directory's name, in bytes.
const maxDirName = 50

// dirName returns the name of a method's directory: role and method in lower-case ASCII. If that changes more than
// letter case, or the name is taken, it ends in eight digits of a hash.
func dirName(role, method string, taken map[string]bool) string {
	changed := false
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		changed = changed || r != ' ' && r != '-'
		return '_'
	}, role+"_"+method)
	if name[0] < 'a' || name[0] > 'z' { // the go command ignores directories that begin with _
		name = "t" + name
	}
	if len(name) > maxDirName {
		name, changed = name[:maxDirName], true
	}
	if changed || taken[name] {
		sum := sha256.Sum256([]byte(role + "\x00" + method))
		name += "_" + hex.EncodeToString(sum[:4])
	}
	taken[name] = true
	return name
}

var (
	packageClause   = regexp.MustCompile(`(?m)^package[ \t]+([\pL_][\pL_\p{Nd}]*)`)
	buildConstraint = regexp.MustCompile(`(?m)^[ \t]*//go:build`)
)

// compilable returns an error if the go command would not accept the program as a package of a module. The gate has
// checked the rest.
func compilable(code string) error {
	clause := packageClause.FindStringSubmatch(code)
	switch {
	case clause == nil:
		return errors.New("the program has no package clause on a line of its own")
	case clause[1] == "main" || strings.HasSuffix(clause[1], "_test"):
		return errors.New("the program's package is called " + clause[1] +
			", which no other package can import; put it with package tool")
	case buildConstraint.MatchString(code):
		return errors.New("the program has a build constraint; put it without one")
	}
	return nil
}
