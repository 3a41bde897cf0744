package gate

import (
	"go/ast"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// A use assigns a capability to the symbols of a package: those whose names begin with one of the prefixes, or all if
// there are no prefixes.
type use struct {
	capability string
	prefixes   []string
}

// uses lists the capabilities of packages by import path.
var uses = map[string]use{
	"encoding/xml":  {capability: "xml_parse"},
	"encoding/csv":  {capability: "csv_parse"},
	"encoding/json": {capability: "json_shape"},
	"html":          {capability: "html_extract"},
	allow.Page:      {capability: "html_extract"},
	"regexp":        {capability: "text_scan"},
	"text/scanner":  {capability: "text_scan"},
	"bufio":         {capability: "text_scan"},
	"strings":       {"text_scan", []string{"Fields", "Split", "Lines", "Cut", "Index", "Contains"}},
	"bytes":         {"text_scan", []string{"Fields", "Split", "Lines", "Cut", "Index", "Contains"}},
	"math":          {capability: "numeric"},
	"math/big":      {capability: "numeric"},
	"math/bits":     {capability: "numeric"},
	"math/cmplx":    {capability: "numeric"},
	"strconv":       {"numeric", []string{"Parse", "Atoi"}},
	"time":          {capability: "date_time"},
	"net/url":       {capability: "url_parse"},
	"sort":          {capability: "sorting"},
	"slices":        {"sorting", []string{"Sort"}},
}

// capability records the capability of the selected package symbol, whether the symbol reads the clock or a source of
// randomness, and whether what it yields may differ between runs with the same.
func (ff *factFinder) capability(s *ast.SelectorExpr) {
	obj := ff.c.info.Uses[s.Sel]
	if obj == nil || obj.Pkg() == nil || obj.Pkg() == ff.c.pkg {
		return
	}
	if p, varied := libraryName(obj); varied != "" && slices.Contains(p.Varies, varied) {
		ff.f.Nondeterministic = true
	}
	name, path := obj.Name(), allow.SeenPath(obj.Pkg().Path())
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	if u, ok := uses[path]; ok && (u.prefixes == nil || slices.ContainsFunc(u.prefixes, begins)) {
		ff.caps[u.capability] = true
	}
	if strings.HasPrefix(path, "crypto/") || strings.HasPrefix(path, "hash/") {
		ff.caps["hashing"] = true
	}
	switch path {
	case "time":
		if name == "Now" || name == "Since" || name == "Until" {
			ff.f.UsesClock = true
		}
	case "context":
		if begins("WithDeadline") || begins("WithTimeout") {
			ff.f.UsesClock = true
		}
	case "math/rand", "math/rand/v2", "crypto/rand", "hash/maphash":
		ff.f.UsesRandomness = true
	}
}
