package catalog

import (
	"regexp"
	"strings"
	"testing"
)

func TestToolName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80)
	for _, c := range []struct{ role, method, want string }{
		{"calculator", "add", "calculator__add"},
		{"a-b", "c_d", "a-b__c_d"},
		{"calculator", "add!", "calculator__add__a334ba43"},
		{"text tools", "slugify", "text_tools__slugify_fa509da1"},
		{"überschrift", "größe", "_berschrift__gr__e_1a277716"},
		{"計算", "足す", "_______4eb257d6"},
		{"3d printer", "slice", "_3d_printer__slice_73a45e46"}, {"3d", "print", "_3d__print_356febef"},
		{"-x", "y", "_-x__y_fa6d768d"}, {"x", "3d", "x__3d"},
		{"a__b", "c", "a__b__c_a92700ce"},
		{"a", "b__c", "a__b__c_01b8a75b"},
		{"r", long, "r__" + long[:52] + "_a368fc26"},
		{strings.Repeat("r", 31), strings.Repeat("m", 31), strings.Repeat("r", 31) + "__" + strings.Repeat("m", 31)},
		{strings.Repeat("r", 31), strings.Repeat("m", 32), strings.Repeat("r", 31) + "__" + strings.Repeat("m", 22) +
			"_cbcad1e3"},
	} {
		if got := toolName(Method{c.role, c.method}); got != c.want {
			t.Errorf("%s.%s: %s, want %s", c.role, c.method, got, c.want)
		}
	}
}

// Methods that claim the same name get separate names, and the name itself stands for none of them.
func TestNamesThatCollide(t *testing.T) {
	t.Parallel()
	tail, head := Method{"a_", "b"}, Method{"a", "_b"} // both give a___b
	umlaut := Method{"äb", "x"}
	hashed := toolName(umlaut)
	role, method, _ := strings.Cut(hashed, "__")
	copycat := Method{role, method} // a plain name that equals a hashed one
	if role != "_b" || toolName(copycat) != hashed || toolName(tail) != "a___b" || toolName(head) != "a___b" {
		t.Fatalf("the names do not collide: %s %s %s %s", hashed, toolName(copycat), toolName(tail), toolName(head))
	}
	all := []Method{tail, head, umlaut, copycat, {"calculator", "add"}}
	table := newTable(all)
	if len(table.names) != len(all) || len(table.methods) != len(all) ||
		table.names[Method{"calculator", "add"}] != "calculator__add" {
		t.Fatalf("names: %v", table.names)
	}
	for m, name := range table.names {
		if table.methods[name] != m || !goodName.MatchString(name) {
			t.Errorf("%v is %s, which is %v", m, name, table.methods[name])
		}
	}
	for _, name := range []string{"a___b", hashed} {
		if m, ok := table.methods[name]; ok || len(table.ambiguous[name]) != 2 {
			t.Errorf("%s stands for %v; claimed by %v", name, m, table.ambiguous[name])
		}
	}
	if alone := newTable([]Method{tail}); alone.names[tail] != "a___b" {
		t.Errorf("without the other it is %s", alone.names[tail])
	}
	// Names from before the rule that names begin with a letter or "_" still work.
	for earlier, m := range map[string]Method{"3d__print": {"3d", "print"},
		"3d_printer__slice_73a45e46": {"3d printer", "slice"}} {
		if table := newTable([]Method{m, tail}); table.methods[earlier] != m || table.names[m] == earlier {
			t.Errorf("%s is %v, which is %s", earlier, table.methods[earlier], table.names[m])
		}
	}
	// A method whose plain name equals a long form keeps it. The method that needs the long form has no name.
	role, method, _ = strings.Cut(table.names[umlaut], "__")
	taken := Method{role, method}
	table = newTable(append(all, taken))
	if name, ok := table.names[umlaut]; ok || table.names[taken] == "" {
		t.Errorf("the umlaut is %q, the other %q", name, table.names[taken])
	}
}

var goodName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

func FuzzToolName(f *testing.F) {
	f.Add("calculator", "add", "calc", "ulator__add")
	f.Add("ä", "x", "_", "_x_12345678")
	f.Add(strings.Repeat("r", 200), "m", strings.Repeat("r", 199), "rm")
	f.Fuzz(func(t *testing.T, role, method, role2, method2 string) {
		a, b := Method{role, method}, Method{role2, method2}
		for _, m := range []Method{a, b} {
			if name := toolName(m); !goodName.MatchString(name) {
				t.Errorf("%q.%q: %q", m.Role, m.Name, name)
			}
		}
		if a == b {
			return
		}
		table := newTable([]Method{a, b})
		if len(table.names) != 2 || table.names[a] == table.names[b] {
			t.Errorf("%q and %q: %v", a, b, table.names)
		}
		for m, name := range table.names {
			if table.methods[name] != m || !goodName.MatchString(name) {
				t.Errorf("%q is %q, which is %q", m, name, table.methods[name])
			}
		}
	})
}
