package residue

import (
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

var (
	// tables are types whose fields or elements programs can change through a pointer, and whose values are shared.
	tables = names{"unicode.RangeTable", "hash/crc32.Table", "hash/crc64.Table"}

	// withDecoder adds the decoder whose fields hold maps of package xml.
	withDecoder = names{"unicode.RangeTable", "hash/crc32.Table", "hash/crc64.Table", "encoding/xml.Decoder"}

	// opaque are types with shared values behind pointers and without fields that programs can reach.
	opaque = names{"time.Location", "encoding/base32.Encoding", "encoding/base64.Encoding"}

	// readers are functions that only read the maps and slices among their arguments and keep none.
	readers = names{"strings.Join", "strings.ToUpperSpecial", "strings.ToLowerSpecial", "strings.ToTitleSpecial",
		"bytes.ToUpperSpecial", "bytes.ToLowerSpecial",
		"bytes.ToTitleSpecial", "slices.All", "slices.BinarySearch", "slices.Clone", "slices.Contains",
		"slices.ContainsFunc", "slices.Equal", "slices.Index", "slices.IndexFunc",
		"slices.Values", "unicode.In", "unicode.IsOneOf", "maps.All", "maps.Clone", "maps.Equal", "maps.Keys",
		"maps.Values", "fmt.Sprint", "fmt.Sprintf", "fmt.Sprintln", "encoding/json.Marshal"}

	// writers are functions that only write to their io.Writer argument.
	writers = names{"fmt.Fprint", "fmt.Fprintf", "fmt.Fprintln", "io.MultiWriter", "io.TeeReader", "io.WriteString"}

	// printers are functions that print to or scan from their first argument and do not keep it.
	printers = names{"fmt.Fprint", "fmt.Fprintf", "fmt.Fprintln", "fmt.FormatString", "io.WriteString", "fmt.Fscan",
		"fmt.Fscanf", "fmt.Fscanln"}

	// bytesReaders are functions that only read the byte slices among their arguments, up to their length.
	bytesReaders = names{"bytes.Clone", "bytes.Compare", "bytes.Contains", "bytes.ContainsAny", "bytes.Count",
		"bytes.Equal", "bytes.EqualFold", "bytes.HasPrefix",
		"bytes.HasSuffix", "bytes.Index", "bytes.IndexByte", "bytes.LastIndex", "bytes.NewReader", "bytes.ReplaceAll",
		"bytes.ToLower", "bytes.ToUpper", "encoding/hex.EncodeToString",
		"encoding/json.Unmarshal", "encoding/json.Valid", "unicode/utf8.DecodeRune", "unicode/utf8.RuneCount",
		"unicode/utf8.Valid"}
	// trimmers return a part of their first argument.
	trimmers = names{"bytes.Trim", "bytes.TrimLeft", "bytes.TrimPrefix", "bytes.TrimRight", "bytes.TrimSpace",
		"bytes.TrimSuffix"}

	// tableFields are the fields of unicode.RangeTable through which programs can change a table.
	tableFields = names{"R16", "R32", "LatinOffset"}

	// drawers are functions that only read the images among their arguments but the first, and keep none.
	drawers = names{"image/draw.Draw", "image/draw.DrawMask"}

	// pure are packages whose generic functions convert no value to an interface.
	pure = names{"slices", "maps", "cmp", "iter"}
)

// names is a short list of names. Unlike a map it needs no code at the start of the process.
type names []string

func (n names) has(name string) bool { return slices.Contains(n, name) }

// nameOf returns the import path and name of a named type, or "" for any other type.
func nameOf(t types.Type) string {
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return ""
	}
	return n.Obj().Pkg().Path() + "." + n.Obj().Name()
}

// changes reports whether a function or method of another package changes what that package holds for all its users, or
// changes a value through reflection, which may be another package's.
func changes(f *types.Func) bool {
	p, _ := allow.Find(allow.SeenPath(f.Pkg().Path()))
	return p.Path == "reflect" && setters.begin(f.Name()) ||
		f.Signature().Recv() == nil && slices.Contains(p.Changes, f.Name())
}

// setters are beginnings of names in package reflect that change values, or call functions that may do so.
var setters = names{"Append", "Call", "Clear", "Copy", "Grow", "Method", "Set", "Swapper"}

// begin reports whether one of the names is the beginning of name.
func (n names) begin(name string) bool {
	return slices.ContainsFunc(n, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// plainStruct reports whether a copy of a struct leads to nothing that belongs to the original, and none of its methods
// changes it in place.
func plainStruct(t types.Type, s *types.Struct) bool {
	for f := range s.Fields() {
		if _, ok := f.Type().Underlying().(*types.Basic); !ok {
			return false
		}
	}
	return types.NewMethodSet(types.NewPointer(t)).Len() == types.NewMethodSet(t).Len()
}

// disguised reports whether a declared type has the structure of an opaque one. A pointer to the opaque type could then
// be converted to a pointer to the declared one.
func disguised(t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if !ok || s.NumFields() == 0 || s.Field(0).Exported() || s.Field(0).Pkg() == nil {
		return false
	}
	home := s.Field(0).Pkg()
	for _, name := range []string{"Location", "Encoding"} {
		if o := home.Scope().Lookup(name); o != nil && opaque.has(home.Path()+"."+name) &&
			types.Identical(o.Type().Underlying(), s) {
			return true
		}
	}
	return false
}

// mentions finds types that contain certain named types.
type mentions struct {
	pkg   *types.Package // the package whose types are examined inside
	names names
}

// in reports whether values of type t hold or lead to a value of one of the names.
func (m *mentions) in(t types.Type) bool { return m.within(t, map[*types.Named]bool{}) }

// within is in with the named types visited so far, which ends the recursion of recursive types.
func (m *mentions) within(t types.Type, seen map[*types.Named]bool) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if m.names.has(nameOf(t)) {
			return true
		}
		for a := range t.TypeArgs().Types() {
			if m.within(a, seen) {
				return true
			}
		}
		if seen[t] || t.Obj().Pkg() != m.pkg {
			return false
		}
		seen[t] = true
		return m.within(t.Underlying(), seen)
	case *types.Pointer:
		return m.within(t.Elem(), seen)
	case *types.Slice:
		return m.within(t.Elem(), seen)
	case *types.Array:
		return m.within(t.Elem(), seen)
	case *types.Chan:
		return m.within(t.Elem(), seen)
	case *types.Map:
		return m.within(t.Key(), seen) || m.within(t.Elem(), seen)
	case *types.Struct:
		for v := range t.Fields() {
			if m.within(v.Type(), seen) {
				return true
			}
		}
	case *types.Tuple:
		for v := range t.Variables() {
			if m.within(v.Type(), seen) {
				return true
			}
		}
	}
	return false
}
