package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// A shape is a signature by which host packages call methods of program types, and how many methods of program types
// may have it at once. These are all signatures of interface methods in the allowed packages that a host function calls.
type shape struct {
	params, results string // comma-separated types
	slots           int
}

func shapes() []shape {
	return []shape{
		{"", "string", 256},                  // Error, String, GoString
		{"", "error", 128},                   // Unwrap, Close, UnreadByte, UnreadRune
		{"error", "bool", 64},                // Is
		{"any", "bool", 64},                  // As
		{"", "[]error", 32},                  // Unwrap
		{"", "[]byte, error", 128},           // MarshalJSON, MarshalText, MarshalBinary
		{"[]byte", "error", 128},             // UnmarshalJSON ...
		{"[]byte", "[]byte, error", 32},      // AppendText, AppendBinary
		{"[]byte", "[]byte", 32},             // Sum
		{"", "int", 128},                     // Len, Size, BlockSize
		{"int, int", "bool", 128},            // Less
		{"int, int", "", 128},                // Swap
		{"any", "", 96},                      // Push
		{"", "any", 96},                      // Pop
		{"[]byte", "int, error", 64},         // Read, Write
		{"string", "int, error", 32},         // WriteString
		{"", "byte, error", 32},              // ReadByte
		{"byte", "error", 32},                // WriteByte
		{"", "rune, int, error", 32},         // ReadRune
		{"[]byte, int64", "int, error", 16},  // ReadAt, WriteAt
		{"int64, int", "int64, error", 16},   // Seek
		{"io.Writer", "int64, error", 16},    // WriteTo
		{"io.Reader", "int64, error", 16},    // ReadFrom
		{"fmt.State, rune", "", 64},          // Format
		{"fmt.ScanState, rune", "error", 16}, // Scan
		{"*xml.Encoder, xml.StartElement", "error", 16},
		{"*xml.Decoder, xml.StartElement", "error", 16},
		{"xml.Name", "xml.Attr, error", 16},
		{"xml.Attr", "error", 16},
		{"", "", 32},       // Reset
		{"", "bool", 32},   // Timeout, Temporary
		{"", "uint32", 16}, // Sum32
		{"", "uint64", 16}, // Sum64, Uint64
		{"", "int64", 16},  // Int63
		{"int64", "", 16},  // Seed
	}
}

// writeStubs writes the machine code by which the host calls methods of program types: one function a slot, because a
// method is called with its receiver only, so that the code address must tell which method it is.
func writeStubs(dir string) error {
	var b, table bytes.Buffer
	b.WriteString(header("interp") + "import (\n\t\"encoding/xml\"\n\t\"fmt\"\n\t\"io\"\n\t\"unsafe\"\n)\n\n")
	base := 0
	for i, s := range shapes() {
		params, args := number(s.params, "a")
		results, outs := number(s.results, "r")
		for j := range s.slots {
			fmt.Fprintf(&b, "func s%dx%d(p unsafe.Pointer%s) (%s) {\n\tinvokeSlot(%d, p, %s, %s)\n\treturn\n}\n\n",
				i, j, prefix(params), params2(results), base+j, args, outs)
		}
		form := fmt.Sprintf("func(unsafe.Pointer%s) (%s)", prefix(s.params), s.results)
		fmt.Fprintf(&table, "\t\t{%q, %d, codes([]%s{", fmt.Sprintf("func(%s) (%s)", s.params, s.results), base, form)
		for j := range s.slots {
			fmt.Fprintf(&table, "s%dx%d, ", i, j)
		}
		table.WriteString("})},\n")
		base += s.slots
	}
	fmt.Fprintf(&b, "const slotCount = %d\n\n// stubShapes returns the signatures that have stubs, the number of the first slot, and the code of each.\n", base)
	fmt.Fprintf(&b, "func stubShapes() []stubShape {\n\treturn []stubShape{\n%s\t}\n}\n\n", table.String())
	b.WriteString("// stubTypes returns the function type of each shape, in order.\nfunc stubTypes() []any {\n\treturn []any{\n")
	for _, s := range shapes() {
		fmt.Fprintf(&b, "\t\t(func(%s) (%s))(nil),\n", s.params, s.results)
	}
	b.WriteString("\t}\n}\n")
	return writeSource(filepath.Join(dir, "interp", "z_stubs_"+tag()+".go"), b.String())
}

func prefix(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

func params2(s string) string { return s }

// number names the types of a list, and returns the expression for the slice of pointers to them.
func number(list, name string) (decl, pointers string) {
	if list == "" {
		return "", "nil"
	}
	var decls, ptrs []string
	for i, t := range strings.Split(list, ", ") {
		decls = append(decls, fmt.Sprintf("%s%d %s", name, i, t))
		ptrs = append(ptrs, fmt.Sprintf("unsafe.Pointer(&%s%d)", name, i))
	}
	return strings.Join(decls, ", "), "[]unsafe.Pointer{" + strings.Join(ptrs, ", ") + "}"
}
