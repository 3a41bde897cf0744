package outside

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"net/url"
	"strings"
)

// Limits on the strings that are kept.
const (
	maxTexts = 32
	maxText  = 2 << 10 // bytes
)

// A text is what is known about a string: how it begins, and whether that is all of it.
type text struct {
	begins string
	whole  bool
}

// unknown returns the set of all strings.
func unknown() []text { return []text{{}} }

// texts returns the possible values of a string expression.
func (f *flows) texts(e ast.Expr, depth int) []text {
	if f.steps--; e == nil || depth > maxDepth || f.steps < 0 {
		return unknown()
	}
	if v := f.info.Types[e].Value; v != nil {
		if v.Kind() != constant.String {
			return unknown()
		}
		return join([]text{{"", true}}, []text{{constant.StringVal(v), true}})
	}
	switch x := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			return join(f.texts(x.X, depth+1), f.texts(x.Y, depth+1))
		}
		return unknown()
	case *ast.CallExpr:
		if out, made := f.made(x, depth); made {
			return out
		}
	}
	out := f.all(f.origins(e, depth+1), e, depth)
	if o := f.object(e); o != nil && len(f.grows[o]) > 0 {
		out = f.grown(out, f.grows[o], depth)
	}
	return out
}

// all returns the texts of all origins. A variable that is its own origin cannot be followed.
func (f *flows) all(from []ast.Expr, self ast.Expr, depth int) []text {
	out := []text{}
	for _, o := range from {
		if o == self {
			return unknown()
		}
		if out = append(out, f.texts(o, depth+1)...); len(out) > maxTexts {
			return unknown()
		}
	}
	if len(out) == 0 {
		return []text{{"", true}} // never set, so it is the zero value
	}
	return out
}

// grown returns the texts of a variable to which strings are appended.
func (f *flows) grown(begin []text, added []ast.Expr, depth int) []text {
	out := begin
	for _, a := range added {
		for _, t := range join(begin, f.texts(a, depth+1)) {
			out = append(out, text{t.begins, false})
		}
	}
	if len(out) > maxTexts {
		return unknown()
	}
	return out
}

// join returns the texts of two strings, one after the other.
func join(a, b []text) []text {
	var out []text
	for _, x := range a {
		if !x.whole {
			out = append(out, x)
			continue
		}
		for _, y := range b {
			t := text{x.begins + y.begins, y.whole}
			if len(t.begins) > maxText {
				t = text{t.begins[:maxText], false}
			}
			out = append(out, t)
		}
	}
	if len(out) > maxTexts {
		return unknown()
	}
	return out
}

// made returns the texts of a conversion, fmt.Sprintf or URL.String. It returns false for any other call.
func (f *flows) made(n *ast.CallExpr, depth int) ([]text, bool) {
	if f.info.Types[n.Fun].IsType() && len(n.Args) == 1 {
		if b, ok := f.info.TypeOf(n.Args[0]).Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
			return f.texts(n.Args[0], depth+1), true
		}
		return unknown(), true
	}
	s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil, false
	}
	fn, ok := f.info.Uses[s.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return nil, false
	}
	switch {
	case fn.Pkg().Path() == "fmt" && fn.Name() == "Sprintf" && len(n.Args) > 0 && !n.Ellipsis.IsValid():
		var out []text
		for _, format := range f.texts(n.Args[0], depth+1) {
			out = append(out, f.formatted(format, n.Args[1:], depth)...)
		}
		return out, true
	case fn.Name() == "String" && isURL(f.info.TypeOf(s.X)):
		return f.addresses(s.X, depth), true
	}
	return nil, false
}

// formatted expands a format up to the first verb that does not print a string.
func (f *flows) formatted(format text, args []ast.Expr, depth int) []text {
	out, rest := []text{{"", true}}, format.begins
	for {
		plain, after, verb := strings.Cut(rest, "%")
		out = join(out, []text{{plain, verb || format.whole}})
		switch {
		case !verb:
			return out
		case strings.HasPrefix(after, "%"):
			out, rest = join(out, []text{{"%", true}}), after[1:]
		case (strings.HasPrefix(after, "s") || strings.HasPrefix(after, "v")) && len(args) > 0:
			out, rest, args = join(out, f.texts(args[0], depth+1)), after[1:], args[1:]
		default:
			return join(out, unknown())
		}
	}
}

// isURL reports whether the type is url.URL or a pointer to it.
func isURL(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "net/url" && n.Obj().Name() == "URL"
}

// addresses returns the texts of a url.URL up to its host.
func (f *flows) addresses(e ast.Expr, depth int) []text {
	if f.steered {
		return unknown()
	}
	var out []text
	for _, o := range f.origins(e, depth+1) {
		var from []text
		switch o := o.(type) {
		case *ast.CallExpr:
			if s, ok := ast.Unparen(o.Fun).(*ast.SelectorExpr); ok && len(o.Args) == 1 {
				if fn, ok := f.info.Uses[s.Sel].(*types.Func); ok && fn.Pkg() != nil && fn.Pkg().Path() == "net/url" && fn.Name() == "Parse" && fn.Signature().Recv() == nil {
					from = f.texts(o.Args[0], depth+1)
				}
			}
		}
		for _, t := range from {
			if origin, known := originOf(t); known && origin != "" {
				out = append(out, text{origin + "/", false})
			} else {
				return unknown()
			}
		}
		if from == nil {
			return unknown()
		}
	}
	if len(out) == 0 {
		return unknown()
	}
	return out
}

// connection is the prefix of a connection whose URL is secret, as in connection:NAME.
const connection = "connection:"

// originOf returns the scheme and host of a URL, or "" if it has none. known means that the rest of the text cannot
// change the result. A connection whose URL is secret is its own origin.
func originOf(t text) (origin string, known bool) {
	if name, ok := strings.CutPrefix(t.begins, connection); ok && t.whole && name != "" &&
		!strings.ContainsAny(name, "/ ?#%") {
		return t.begins, true
	}
	scheme, rest, ok := strings.Cut(t.begins, "://")
	if scheme = strings.ToLower(scheme); !ok || scheme != "http" && scheme != "https" {
		return "", t.whole
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		if !t.whole {
			return "", false
		}
		end = len(rest)
	}
	u, err := url.Parse(scheme + "://" + rest[:end])
	if err != nil || u.Hostname() == "" || strings.ContainsAny(u.Host, "%{}<> ") {
		return "", t.whole
	}
	return scheme + "://" + u.Host, true
}
