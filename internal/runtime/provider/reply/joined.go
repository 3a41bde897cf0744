package reply

import (
	"go/ast"
	"slices"
	"strings"
)

// joined adds to a program the other blocks of the reply that declare names it uses: models write helpers in blocks of
// their own. The gate makes one file of them.
func joined(c candidate, all []candidate) candidate {
	if c.form != FormFence || c.rank != rankWhole {
		return c
	}
	own := declared(c.code)
	uses := used(c.code)
	var parts []candidate
	for _, other := range all {
		names := declared(other.code)
		needed := func(name string) bool { return uses[name] && !own[name] }
		if other.at == c.at || other.form != FormFence || other.rank == rankWhole ||
			!slices.ContainsFunc(keys(names), needed) {
			continue
		}
		if slices.ContainsFunc(keys(names), func(name string) bool { return own[name] }) {
			continue
		}
		for name := range names {
			own[name] = true
		}
		parts = append(parts, other)
	}
	if len(parts) == 0 {
		return c
	}
	parts = append(parts, c)
	slices.SortFunc(parts, func(a, b candidate) int { return a.at - b.at })
	var text []string
	for _, p := range parts {
		text = append(text, strings.TrimRight(p.code, "\n"))
	}
	c.code = strings.Join(text, "\n\n") + "\n"
	return c
}

func keys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

func fileOf(code string) *ast.File {
	if file := parseGo(code); file != nil || hasPackage().MatchString(code) {
		return file
	}
	return parseGo("package tool;" + code)
}

// declared returns the names that a file declares at package level, or none if it does not parse.
func declared(code string) map[string]bool {
	out := map[string]bool{}
	file := fileOf(code)
	if file == nil {
		return out
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				out[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					out[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						out[name.Name] = true
					}
				}
			}
		}
	}
	delete(out, "_")
	return out
}

// used returns the names that a file uses, without selectors.
func used(code string) map[string]bool {
	out := map[string]bool{}
	file := fileOf(code)
	if file == nil {
		return out
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			ast.Inspect(n.X, func(x ast.Node) bool {
				if id, ok := x.(*ast.Ident); ok {
					out[id.Name] = true
				}
				return true
			})
			return false
		case *ast.Ident:
			out[n.Name] = true
		}
		return true
	})
	return out
}
