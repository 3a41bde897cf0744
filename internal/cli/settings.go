package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/app"
)

// A Setting describes a field of Options with its tags.
type Setting struct {
	Index            []int // of the field, for reflect.Value.FieldByIndex
	Name, Env, Value string
	Default, Help    string
	Secret           bool
	Scope            Scope
	Kind             reflect.Type
}

// Settings returns the settings in the order of the struct. The list is shared and must not be changed.
func Settings() []Setting { return settings() }

// settings computes the list once, because at each start twenty commands declare flags from it.
var settings = sync.OnceValue(func() []Setting {
	defaults := reflect.ValueOf(defaultOptions())
	var list []Setting
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Options]()) {
		if f.Tag.Get("name") == "" {
			continue // an internal field, not a setting
		}
		s := Setting{Index: f.Index, Name: f.Tag.Get("name"), Env: f.Tag.Get("env"), Value: f.Tag.Get("value"),
			Default: f.Tag.Get("default"), Help: f.Tag.Get("help"), Secret: f.Tag.Get("secret") != "",
			Scope: Scope(cmp.Or(f.Tag.Get("for"), string(ServeScope))), Kind: f.Type}
		if s.Default == "" {
			s.Default = fmt.Sprint(defaults.FieldByIndex(f.Index).Interface())
		}
		list = append(list, s)
	}
	return list
})

// flagValue holds the text of a flag. It is parsed once all layers are known.
type flagValue struct {
	setting Setting
	text    string
}

func (v *flagValue) String() string { return v.text }

// Set stores the text of the flag. A flag for a list of lines may be repeated.
func (v *flagValue) Set(s string) error {
	if v.setting.lines() && v.text != "" {
		s = v.text + "\n" + s
	}
	v.text = s
	return nil
}

func (v *flagValue) Type() string { return v.setting.Value }

// addFlags declares --config and the flags of the scope's settings, except those in without.
func addFlags(in Scope, flags *pflag.FlagSet, without ...string) {
	// A command may have the settings of both scopes.
	if flags.Lookup("config") == nil {
		flags.String("config", "", "configuration file: the settings below as YAML, name: value [RECURGENT_CONFIG]")
	}
	for _, s := range Settings() {
		if s.Secret || s.Scope != in || slices.Contains(without, s.Name) {
			continue
		}
		f := flags.VarPF(&flagValue{setting: s}, s.Name, "", fmt.Sprintf("%s [%s] (default %s)", s.Help, s.Env,
			s.Default))
		if s.Kind.Kind() == reflect.Bool {
			f.NoOptDefVal = "true"
		}
	}
}

// A Scope selects the settings that a command uses, so that a client command does not fail because of a daemon's
// setting.
type Scope string

const (
	ServeScope  Scope = "serve"
	ClientScope Scope = "client"
)

// loadOptions returns the checked settings of the scope. Flags override the environment, which overrides the file,
// which overrides the defaults. Errors are *settingError.
func loadOptions(in Scope, flags *pflag.FlagSet, env func(string) (string, bool)) (Options, error) {
	o, sources := defaultOptions(), map[string]string{}
	file, err := configFile(flags, env)
	if err != nil {
		return o, err
	}
	for _, s := range Settings() {
		text, source, ok := lookup(s, file, flags, env)
		if !ok || s.Scope != in {
			continue
		}
		if err := s.set(&o, text); err != nil {
			return o, &settingError{Name: s.Name, Source: source, Reason: err.Error()}
		}
		sources[s.Name] = source
	}
	if in == ClientScope {
		err = o.resolveClient()
	} else if err = checkPasswords(o, sources); err == nil {
		err = o.resolveServe(env)
	}
	// resolveClient and resolveServe do not know where a value came from.
	var bad *settingError
	if errors.As(err, &bad) {
		bad.Source = sources[bad.Name]
	}
	return o, err
}

// lookup returns the setting's text from the layer of highest precedence that has it, and its source.
func lookup(s Setting, file configuration, flags *pflag.FlagSet,
	env func(string) (string, bool)) (text, source string, ok bool) {
	if f := flags.Lookup(s.Name); f != nil && f.Changed {
		return f.Value.String(), "--" + s.Name, true
	}
	if text, _ := env(s.Env); text != "" {
		return text, s.Env, true
	}
	if text, ok := file.values[s.Name]; ok {
		return text, file.path, true
	}
	return "", "", false
}

// set parses the text into the field of the setting.
func (s Setting) set(o *Options, text string) error {
	field := reflect.ValueOf(o).Elem().FieldByIndex(s.Index)
	switch field.Interface().(type) {
	case string:
		field.SetString(text)
	case []string:
		var list []string
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		field.Set(reflect.ValueOf(list))
	case app.Lines:
		field.Set(reflect.ValueOf(app.ParseLines(text)))
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		field.SetBool(b)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		field.SetInt(int64(n))
	case app.Bytes:
		n, err := app.ParseBytes(text)
		if err != nil {
			return err
		}
		field.SetInt(int64(n))
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration, such as 30s or 2m", text)
		}
		field.SetInt(int64(d))
	default:
		panic("a field of Options has a type that set does not read: " + s.Name) // unreachable: a test sets every field
	}
	return nil
}

// configuration holds the settings of a configuration file as text.
type configuration struct {
	path   string
	values map[string]string
}

// configFile reads the file named by --config or RECURGENT_CONFIG, or else the one in the XDG configuration directory
// if it exists.
func configFile(flags *pflag.FlagSet, env func(string) (string, bool)) (configuration, error) {
	path, named := "", true
	if f := flags.Lookup("config"); f != nil && f.Changed {
		path = f.Value.String()
	} else if p, _ := env("RECURGENT_CONFIG"); p != "" {
		path = p
	} else {
		path, named = defaultConfigFile(env), false
	}
	if path == "" {
		return configuration{}, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return configuration{}, nil
	}
	if err != nil {
		return configuration{}, &settingError{Name: "config", Reason: err.Error()}
	}
	return parseConfig(path, data)
}

func defaultConfigFile(env func(string) (string, bool)) string {
	if dir, _ := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "recurgent", "config.yaml")
	}
	if home, _ := env("HOME"); home != "" {
		return filepath.Join(home, ".config", "recurgent", "config.yaml")
	}
	return ""
}

// parseConfig parses a YAML mapping of setting names to scalars or lists of scalars. Unknown names are errors, because
// ignoring a misspelt setting would be worse than failing.
func parseConfig(path string, data []byte) (configuration, error) {
	refuse := func(format string, args ...any) (configuration, error) {
		return configuration{}, &settingError{Name: "config", Reason: path + ": " + fmt.Sprintf(format, args...)}
	}
	var document map[string]yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return refuse("%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", ""))
	}
	known := map[string]Setting{}
	for _, s := range Settings() {
		known[s.Name] = s
	}
	c := configuration{path: path, values: map[string]string{}}
	for name, node := range document {
		s, ok := known[name]
		if !ok {
			return refuse("line %d: %s is not a setting; see recurgentd serve --help", node.Line, name)
		}
		text, err := s.nodeText(node)
		if err != nil {
			return refuse("line %d: %s: %s", node.Line, s.Name, err)
		}
		if text != "" { // an empty value counts as unset, as in the environment
			c.values[name] = text
		}
	}
	return c, nil
}

// nodeText returns the text of a YAML scalar, or of a list in the form that set parses.
func (s Setting) nodeText(n yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "", nil
		}
		return n.Value, nil
	case yaml.SequenceNode:
		items := make([]string, 0, len(n.Content))
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				return "", errors.New("must be a list of plain values")
			}
			items = append(items, c.Value)
		}
		if s.lines() {
			return strings.Join(items, "\n"), nil
		}
		return strings.Join(items, ","), nil
	}
	return "", errors.New("must be a plain value or a list of them")
}
