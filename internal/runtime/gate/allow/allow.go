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

// A Package is an allowed import.
type Package struct {
	Path   string
	Hidden []string // exported names that programs cannot use
	// Useless has exported names that programs cannot use either, because they only serve packages that are not
	// allowed. Prompts do not mention them.
	Useless []string
	Only    []string // if not empty, the only exported names that programs can use
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
		return slices.Contains(p.Only, name)
	}
	return !slices.Contains(p.Hidden, name) && !slices.Contains(p.Useless, name)
}

// Packages returns the list, sorted by path. Callers must not change it. No listed package reaches files, sockets,
// processes, other goroutines or raw memory; docs/dialect.md explains what is missing.
func Packages() []Package { return packages }

// packages is static data that needs no code to build, because every runner starts with it. It is sorted by path.
var packages = []Package{
	{Path: "bufio"}, {Path: "bytes"},
	{Path: "cmp"},
	{Path: "compress/gzip"}, {Path: "container/heap"}, {Path: "container/list"}, {Path: "container/ring"},
	{Path: "crypto/hmac"}, {Path: "crypto/md5"},
	{Path: "crypto/rand", Only: []string{"Int", "Read", "Reader", "Text"}},
	{Path: "crypto/sha1"}, {Path: "crypto/sha256"}, {Path: "crypto/sha512"}, {Path: "crypto/subtle"},
	{Path: "encoding"}, {Path: "encoding/ascii85"},
	{Path: "encoding/base32"}, {Path: "encoding/base64"}, {Path: "encoding/binary"}, {Path: "encoding/csv"},
	{Path: "encoding/hex"},
	// These are options of encoding/json/v2, which programs cannot import. Go 1.27 has them.
	{Path: "encoding/json", Useless: []string{"CallMethodsWithLegacySemantics", "DefaultOptionsV1",
		"FormatByteArrayAsArray", "FormatBytesWithLegacySemantics",
		"FormatDurationAsNano", "MatchCaseSensitiveDelimiter", "MergeWithLegacySemantics",
		"OmitEmptyWithLegacySemantics", "Options",
		"ParseBytesWithLooseRFC4648", "ParseTimeWithLooseRFC3339", "ReportErrorsWithLegacySemantics",
		"StringifyWithLegacySemantics",
		"UnmarshalArrayFromAnyLength"}},
	{Path: "encoding/pem"}, {Path: "encoding/xml"}, {Path: "errors"}, {Path: "fmt"}, {Path: "hash"},
	{Path: "hash/adler32"}, {Path: "hash/crc32"},
	{Path: "hash/crc64"}, {Path: "hash/fnv"},
	{Path: "hash/maphash"},
	{Path: "html"}, {Path: "index/suffixarray"},
	// A pipe needs two goroutines.
	{Path: "io", Hidden: []string{"Pipe", "PipeReader", "PipeWriter"}},
	{Path: "iter"},
	{Path: "maps"},
	{Path: "math"}, {Path: "math/big"}, {Path: "math/bits"}, {Path: "math/cmplx"},
	{Path: "math/rand", Hidden: []string{"Seed"}},
	{Path: "math/rand/v2"}, {Path: "mime/quotedprintable"}, {Path: "net/netip"}, {Path: "net/url"}, {Path: "path"},
	{Path: Host, Hidden: []string{"New", "Input", "Host", "Failure", "AsFailure", "Finish", "Streams", "Mismatch",
		"Number", "Inexact", "LongDigits", "Unmarshal"}},
	{Path: Page},
	{Path: "reflect", Only: []string{"DeepEqual"}},
	{Path: "regexp"}, {Path: "regexp/syntax"},
	{Path: "slices"},
	{Path: "sort"}, {Path: "strconv"}, {Path: "strings"}, {Path: "text/scanner"}, {Path: "text/tabwriter"},
	// Timers run code by themselves or send the real time.
	{Path: "time", Hidden: []string{"AfterFunc", "Tick", "NewTicker", "Ticker", "NewTimer", "Timer", "After"}},
	{Path: "unicode"}, {Path: "unicode/utf16"}, {Path: "unicode/utf8"},
}

// Interpreted returns the packages that programs for yaegi may import. Package gate/yaegi runs programs where there is
// no compiler.
func Interpreted() []string {
	return strings.Fields("recurgent strings strconv fmt math errors unicode unicode/utf8 regexp sort time html path net/url encoding/hex encoding/base64 encoding/json")
}

// Find returns the allowed package with that import path, and whether there is one.
func Find(path string) (Package, bool) {
	i, found := slices.BinarySearchFunc(packages, path, func(p Package,
		path string) int {
		return strings.Compare(p.Path, path)
	})
	if !found {
		return Package{}, false
	}
	return packages[i], true
}
