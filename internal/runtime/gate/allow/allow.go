// Package allow is the single list of what programs may import: the packages, and the symbols in them that are not
// available. Export data, the interpreter's symbol tables, the gate's decisions, the prompt's dialect notes and
// docs/dialect.md are all derived from it.
package allow

import (
	"slices"
	"strings"
)

// Host is the import path by which programs see the host package, and HostPath is its real path. The packages below it,
// such as Page, are ours too.
const (
	Host     = "recurgent"
	HostPath = "github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	Page     = Host + "/html"
)

// TruePath returns the real import path of the package that programs see under path.
func TruePath(path string) string { return moved(path, Host, HostPath) }

// SeenPath returns the import path by which programs see the package at the real path.
func SeenPath(path string) string { return moved(path, HostPath, Host) }

func moved(path, from, to string) string {
	if rest, ok := strings.CutPrefix(path, from); ok && (rest == "" || rest[0] == '/') {
		return to + rest
	}
	return path
}

// ImportMap returns an import map in the format of the compiler and the linker, one line for each of our packages.
func ImportMap() string {
	var b strings.Builder
	for _, p := range packages {
		if at := TruePath(p.Path); at != p.Path {
			b.WriteString("importmap " + p.Path + "=" + at + "\n")
		}
	}
	return b.String()
}

// A Package is an allowed import. Names of methods have their type before them, as in "Template.ParseFiles".
type Package struct {
	Path   string
	Hidden []Name // exported names that programs cannot use
	// Useless has exported names that programs cannot use either, because they only serve packages or names that are
	// not allowed. Prompts do not mention them.
	Useless []string
	// Only has, if it is not empty, the only exported names that programs can use. One that ends in * stands for all
	// names with this beginning.
	Only []string
	Part string // what Only leaves, in a prompt's words
	// Varies has names whose results may differ between two runs with the same time and seed.
	Varies []string
	// Changes has functions that change the package for all later users in the process.
	Changes []string
	// Denied has names that reach outside of the process for some arguments, which the kernel refuses.
	Denied []string
}

// A Name is a name that programs cannot use.
type Name struct {
	Name    string
	Instead string // what to use
}

// Name returns the package name.
func (p Package) Name() string {
	name := p.Path[strings.LastIndexByte(p.Path, '/')+1:]
	if name == "v2" {
		return "rand"
	}
	return name
}

// Shows reports whether programs can use the exported name.
func (p Package) Shows(name string) bool {
	if len(p.Only) > 0 {
		return slices.ContainsFunc(p.Only, func(only string) bool {
			begin, open := strings.CutSuffix(only, "*")
			return only == name || open && strings.HasPrefix(name, begin)
		})
	}
	return !slices.ContainsFunc(p.Hidden, func(n Name) bool { return n.Name == name }) &&
		!slices.Contains(p.Useless, name)
}

// Instead returns what to use in place of a name that programs cannot use.
func (p Package) Instead(name string) string {
	for _, n := range p.Hidden {
		if n.Name == name || strings.HasPrefix(name, n.Name+".") {
			return n.Instead
		}
	}
	if i := slices.IndexFunc(partly, func(n Name) bool { return n.Name == p.Path }); i >= 0 {
		return partly[i].Instead
	}
	return "Do without it."
}

// Packages returns the list, sorted by path. Callers must not change it. No listed package reaches files, sockets,
// processes, other goroutines or raw memory by the names that it shows, but for those that it lists as denied.
func Packages() []Package { return packages }

// Refused returns the packages of the standard library that programs cannot import, sorted by path, with what to use
// in their place. Callers must not change it.
func Refused() []Name { return refused }

// Interpreted returns the packages that programs for yaegi may import. Package gate/yaegi runs programs where there is
// no compiler.
func Interpreted() []string {
	return strings.Fields("recurgent strings strconv fmt math errors unicode unicode/utf8 regexp sort time html path net/url encoding/hex encoding/base64 encoding/json")
}

// Find returns the allowed package with that import path, and whether there is one.
func Find(path string) (Package, bool) {
	i, found := slices.BinarySearchFunc(packages, path, func(p Package, path string) int {
		return strings.Compare(p.Path, path)
	})
	if !found {
		return Package{}, false
	}
	return packages[i], true
}
