package allow

import (
	"fmt"
	"slices"
	"strings"
)

// RunForm is the signature of the one function that every program must have.
const RunForm = "func Run(call *recurgent.Call) (any, error)"

// Dialect returns the part of a prompt that describes the Go that runs here: what is not allowed, and the packages.
func Dialect() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Ordinary, current Go in one file with exactly one `%s`. Not available: go statements, init functions, compiler directives, assignment to other packages' variables, files, environment, network but for call.Fetch. Imports (x/*: x and all below):\n", RunForm)
	b.WriteString(strings.Join(shortList(), ", "))
	b.WriteString("\n")
	return b.String()
}

// shortList returns the allowed packages for a prompt, grouped by the first element of the path. It omits hidden names,
// which the gate reports when a program uses them.
func shortList() []string {
	var out []string
	for _, first := range groups() {
		out = append(out, group(first)...)
	}
	return out
}

// groups returns the first elements of the paths, in order.
func groups() []string {
	var out []string
	for _, p := range Packages() {
		if first, _, _ := strings.Cut(p.Path, "/"); !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	return out
}

// group returns the allowed packages of a group: all, all but some, or each by its name, whatever is shortest.
func group(first string) []string {
	var itself, below, but, partial []string
	refused := slices.ContainsFunc(Refused(), func(n Name) bool { return n.Name == first })
	for _, p := range Packages() {
		switch rest, in := strings.CutPrefix(p.Path, first+"/"); {
		case len(p.Only) > 0 && (in || p.Path == first):
			partial = append(partial, p.Path+" ("+p.Part+")")
		case in:
			below = append(below, rest)
		case p.Path == first:
			itself = append(itself, first)
		}
	}
	for _, n := range Refused() {
		if rest, in := strings.CutPrefix(n.Name, first+"/"); in && n.Instead != since127 && !strings.Contains(rest, "/") {
			but = append(but, rest)
		}
	}
	whole, list := first+"/*", first+"/{"+strings.Join(below, ",")+"}"
	if len(but) > 0 {
		whole += " (not " + strings.Join(but, ", ") + ")"
	}
	switch {
	case len(below) == 0:
		list = ""
	case len(below) == 1:
		list = first + "/" + below[0]
	case len(whole) < len(list) && !refused:
		return append([]string{whole}, partial...)
	}
	return slices.DeleteFunc(append(append(itself, list), partial...), func(s string) bool { return s == "" })
}

// packageList returns the allowed packages with their hidden names.
func packageList() []string {
	var out []string
	for _, p := range Packages() {
		line := "`" + p.Path + "`"
		switch {
		case len(p.Only) > 0:
			line += ", of it " + strings.Join(p.Only, ", ")
		case len(p.Hidden) > 0:
			line += " without " + hiddenNames(p.Hidden)
		}
		out = append(out, line)
	}
	return out
}

// hiddenNames lists names with what to use in their place, which stands once for names that share it.
func hiddenNames(list []Name) string {
	var out strings.Builder
	for i, n := range list {
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(n.Name)
		if i == len(list)-1 || list[i+1].Instead != n.Instead {
			out.WriteString(" (" + strings.TrimSuffix(n.Instead, ".") + ")")
		}
	}
	return out.String()
}

// varying lists the names whose results vary.
func varying() string { return listed(func(p Package) []string { return p.Varies }) }

// denials lists the names that the kernel refuses for some arguments.
func denials() string { return listed(func(p Package) []string { return p.Denied }) }

// listed lists names of packages.
func listed(of func(Package) []string) string {
	var out []string
	for _, p := range Packages() {
		if names := of(p); len(names) > 0 {
			out = append(out, "`"+p.Path+"`: "+strings.Join(names, ", "))
		}
	}
	return strings.Join(out, "; ")
}

// document returns the text of docs/dialect.md.
func document() string {
	var b strings.Builder
	b.WriteString(`# The Go that programs are written in

Generated from the list in internal/runtime/gate/allow; do not edit.

A program is one file of current Go: what compiles with the Go toolchain of go.mod and keeps to this page runs here with the same result.

## What is different

- One file, package tool, with exactly one function ` + "`" + RunForm + "`" + `.
- No go statements, no init functions, no compiler directives, no cgo.
- Other packages' variables may be read, not assigned to, and their address may not be taken. A program that uses what they lead to in an unusual way (a map of package xml in a variable of its own, the ranges of a table of package unicode), that keeps or changes what a library lends its methods Write, UnmarshalJSON, Format or Scan, that changes a value by reflection, registers something with a library or imports regexp/syntax, runs in a new process for each call, which costs milliseconds.
- A value of a type that no allowed package declares can be printed by fmt, as in ` + "`fmt.Sprint(cert.IPAddresses)`" + ` of a certificate, and used for nothing else.
- Package variables live for one call.
- Statements are evaluated in the Go compiler's order, also where the language does not specify it.
- Ranges over maps visit keys in sorted order. A select takes the first case that is ready. What would block for ever ends the run.
- The clock stands still during a run, but for time.Sleep, which moves it and, in live runs, waits: at most 30 s in sum a call. A sleep that cannot end in time ends the run in timeout at once. Replays, proofs and tries do not wait. Randomness comes from a seed. Both are recorded, so that a call can be repeated.
- Decoding JSON into any, also by json.Unmarshal and a json.Decoder without options, gives a json.Number for a whole number that float64 does not hold. A function that names no json.Number and asks whether such a value is a float64, with ` + "`" + `, ok` + "`" + ` or in a type switch that uses it, panics, and so does a field of type float64.
- Deadlines of contexts follow that clock: they pass during a sleep. ` + "`sync.WaitGroup.Go`" + ` calls its function at once. What waits for what nothing can bring, such as a context's end, ends the run.
- Maps are visited in the same order by reflect and sync.Map.
- The model is asked through call.Ask and call.Predict alone, a few times a call, and what it answered is noted too.
- fmt.Print and its kin print nowhere; there is no standard input. The default loggers of log and log/slog write to the call's notes, as call.Log does, without times. Other loggers of slog have the clock of the run.
- Times and randomness of the run reach libraries where they ask for a reader or use crypto/rand.Reader. Where a library may yield something else in a run with the same, the facts have ` + "`nondeterministic: true`" + `, and a replay compares all the same: ` + varying() + `.
- ` + "`%T`" + ` and the like name types of the program as of package tool.
- Source is at most 64 KiB, nested at most 150 brackets deep.
- Type arguments stand at most 16 deep within each other. A package variable has a type that can be written: one of a type that no package exports is refused, but for a variable of that package.

What the gate corrects instead of refusing, in every program: unused imports and variables, imports that were forgotten but can only mean one allowed package, "html" where "recurgent/html" is meant, another package name.

` + corrections + `

` + "`recurgent/html`" + ` reads web pages, by the names of goquery (docs/programs.md). A selector that is not CSS, or that costs too much on its page, panics; constant ones are refused before the program runs. Pages have at most 32 MiB, 1,048,576 tags and 512 elements within each other.

## Packages

Programs may import all of the standard library that stays in the process, and ours. A test walks over every exported function of it and asks for a decision where one reaches a file, a socket, the process, another goroutine, a timer, the clock, randomness or a variable of its package. The kernel refuses all of these anyhow, also to those that reach outside for some arguments only: ` + denials() + `.

`)
	for _, line := range packageList() {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString(`
## Packages of the standard library that are refused

`)
	for _, n := range Refused() {
		b.WriteString("- `" + n.Name + "`: " + n.Instead + "\n")
	}
	return b.String()
}

// corrections is the section about package fix.
const corrections = `## What is corrected in what a model wrote

A program that a model wrote is corrected (package gate/fix) only where it cannot compile, or where a construct fails for every input, and only so that for each input it computes what its text plainly says, or fails. The corrected text is what is checked, kept, run and shown; the generation's facts say what was corrected, with lines, and so does ` + "`recurgentd why`" + `.
What people put in is not changed. Everything else is refused: all faults at once, each with its line and what to write instead.

| what | becomes |
|---|---|
| ` + "`call.Arg(1, \"n\").(int)`" + `, ` + "`.([]string)`" + `, ` + "`.(map[string]int)`" + ` of arguments, the context, other tools' values and what json.Unmarshal filled | ` + "`recurgent.Must(call.Arg(1, \"n\"), 0).(int)`" + `: 2.5, a text and a missing argument end the call in ` + "`invalid_input`" + `. With ` + "`, ok`" + ` a missing value is not ok, and every other value of another type ends the call (` + "`recurgent.Maybe`" + `, ` + "`Held`" + `), but where Run returns an error of its own for it (` + "`As`" + `). Not where the program handles the float64, the list or the object, where the value may be its own, or where a list or an object is changed in place or has another name: only what Run takes once of the arguments may be. A list or an object of ` + "`call.Context`" + ` is converted where it lies, at the beginning of Run |
| ` + "`call.Open(f)`" + ` and ` + "`call.ReadFile(f)`" + ` of what csv.NewReader, bufio.NewScanner, the decoders of JSON and XML, html.Parse and a bufio.Reader by lines read, and of bytes that become a string, also by way of io.ReadAll, bytes.NewReader and functions of the program, and nobody else | ` + "`call.OpenText(f)`" + `, and a function that reads all of it: UTF-8, whatever the file's character set |
| a case ` + "`int`" + ` of a type switch; ` + "`== 5`" + `, ` + "`case 5`" + ` | ` + "`recurgent.Case`" + `, which ends the call for 2.5; ` + "`recurgent.As`" + ` |
| ` + "`call.Int(\"n\")`" + `, ` + "`call.Args[\"n\"]`" + `, ` + "`call.Input[\"n\"]`" + ` and the like | ` + "`call.Arg(i, \"n\")`" + `, converted where the name says a type, if the place is declared or it is the one argument that the program reads. Not a bare ` + "`call.Get(\"n\")`" + `, which may mean the context |
| ` + "`call.Arg(0, \"n\", 2)`" + `, ` + "`n, ok := call.Arg(0, \"n\")`" + ` | ` + "`recurgent.Or(call.Arg(0, \"n\"), 2)`" + `; ok is whether it is there |
| ` + "`call.Context.Get(k)`" + `, ` + "`.Set(k, v)`" + `, ` + "`call.SetContext(k, v)`" + `, ` + "`recurgent.Error(...)`" + `, ` + "`call.Fail(...)`" + `, ` + "`recurgent.Success(v)`" + `, ` + "`call.Return(v, err)`" + `, ` + "`resp.StatusCode`" + `, ` + "`call.State[\"k\"]`" + ` and other names for the memory, ` + "`call.Logf(...)`" + `, ` + "`call.Print(...)`" + `, ` + "`call.SaveContext()`" + ` | the map, ` + "`recurgent.Fail`" + `, the value, the return, ` + "`resp.Status`" + `, ` + "`call.Context[\"k\"]`" + `, ` + "`fmt.Printf`" + `, ` + "`fmt.Print`" + `, nothing |
| ` + "`call.Log(n)`" + ` of what is no text | ` + "`call.Log(\"%v\", n)`" + ` |
| ` + "`http.Get(url)`" + `, ` + "`recurgent.HTTPGet(url)`" + `, ` + "`call.FetchURL(url)`" + `, with ` + "`resp.Body.Close()`" + ` and ` + "`io.ReadAll(resp.Body)`" + ` | ` + "`call.Fetch(url)`" + `; the body is a text |
| ` + "`call.Download(url)`" + `, ` + "`recurgent.DownloadFile(url)`" + ` of what the program opens as a file, or returns under a name that says so | ` + "`call.FetchFile(url)`" + ` |
| an error without a type where an assertion of an argument does not hold, or a number or time in one cannot be read; ` + "`errors.New(\"invalid_input: ...\")`" + `, ` + "`errors.New(\"not_found\")`" + `, ` + "`fmt.Errorf(\"not_found: %s\", name)`" + ` and the text ` + "`\"invalid_input: ...\"`" + ` as a value, that Run returns | ` + "`recurgent.Fail(\"invalid_input\", ...)`" + ` |
| ` + "`a[\"n\"] < b[\"n\"]`" + ` of JSON; ` + "`m[k] += f`" + ` of an object of JSON, where the program knows no numbers but float64 and compares none with an int; members of the memory that are counted as int | a function that compares numbers, or texts; what is missing counts as nothing; the conversion |
| ` + "`func Run(call recurgent.Call)`" + `, ` + "`Run(ctx, call)`" + `, a Run with other results, one function such as ` + "`Sum(list []float64) float64`" + `, another name, a method of an empty struct, one parameter ` + "`args`" + ` of all declared arguments, or one that is a struct of them; one function whose result ` + "`main`" + ` prints | ` + "`func Run(call *recurgent.Call) (any, error)`" + `, which calls it. Not where ` + "`main`" + ` or two functions may be the beginning. Several parameters are the declared ones of their names or, where none are declared and the function is Run or has the method's name, the arguments in their order |
| several files in one, no package clause or one behind declarations, a function declared within one, a missing comma at the end of a line, braces and else on the next line, the last brace of a function that ends in a return, ` + "`++i`" + `, ` + "`regexp.MustCompile(\"\\b\\d\")`" + ` (no pattern means a backspace) and such a text in a variable, ` + "`and`" + `, ` + "`or`" + `, ` + "`'several letters'`" + `, ` + "`return {\"n\": 1}, nil`" + `, test functions | one file |
| import paths of the host package and of packages of the standard library; imports of other packages that nothing uses, or main alone, which nothing calls; log.Fatal; io/ioutil; go statements of a program without channels; image.Decode where no format is imported | the path; nothing; log.Panic; io; the call alone; imports of image/gif, image/jpeg, image/png |
| a layout of a time such as ` + "`YYYY-MM-DD`" + ` or ` + "`%Y-%m-%d`" + `, where each part is known and stands once | Go's: ` + "`2006-01-02`" + ` |
| ` + "`m[k].n++`" + ` of a map of structs; a key set of a map that has no value, where no call could see that there is none | the struct taken out, changed and put back; an empty map |
| ` + "`int(strconv.Atoi(s))`" + ` and other calls with an error within an expression, where nothing else is called before; ` + "`k, v := strings.Split(s, \"=\")`" + `; ` + "`strconv.ParseInt(s, 2)`" + ` of a base | the error is passed on; the two parts, or an error; 64 bits |
| an int beside float64; a value of JSON where a type is wanted; a float64 as an index, a length, an argument or the value of an int, before ` + "`%`" + `, and for ` + "`%d`" + `; a count of time.Hour; a value of JSON as a condition; a character beside a text, also one counted from another (` + "`'a' + (c-'a'+3)%26`" + `); a text where a reader is wanted, once; a weekday or a month as an int | the conversion there, which ends the call where the value is none of that type, as 2.5 is no int. Not the quotient of integers, a text and an int, nor a float64 in an int variable of a program that divides integers |
| ` + "`return v`" + ` and ` + "`return err`" + ` of two results, ` + "`nil`" + ` for a value beside an error, ` + "`:=`" + ` for ` + "`=`" + `, the forgotten error of a call, names of other languages (null, None, True, float) and of packages (sort.Floats), a package hidden by a variable of its name, a result ` + "`err`" + ` hidden where it is returned | the statement |
| ` + "`call.Bind(v)`" + `, ` + "`json.Unmarshal(data, v)`" + `; ` + "`list.append(x)`" + `, ` + "`append(list, x)`" + ` and ` + "`return sort.Strings(list), nil`" + ` of a list that has no other name and is not looked at later; ` + "`return b.String, nil`" + `; ` + "`return string(b), nil`" + ` of the JSON of a variable, where a list or an object is declared; a list without a value that is returned, or in the object that is, also one in which FindAll of a pattern or slices.Collect found nothing, where an array is declared or something else is corrected, nothing compares such a list with nil, and neither the task nor the text speaks of null; the one value that is printed, at the end of a Run that returns nothing else | ` + "`&v`" + `, the statement, the call, the variable, an empty list, the value |
| ` + "`math.Round(x, 2)`" + `, ` + "`strings.Trim(s)`" + `, ` + "`strings.Split(s)`" + `, ` + "`strings.SplitN(s, \",\")`" + `, ` + "`strings.StartsWith(s, \"a\")`" + `, ` + "`sort.Sort(list)`" + ` of numbers or texts, ` + "`list.length`" + `, ` + "`m.size()`" + `, ` + "`b.ToString()`" + `, ` + "`a <= b`" + ` of two times, an order for sort.Slice without its result, ` + "`[n]int{}`" + ` of a variable n, ` + "`if n`" + ` of a whole number or a text, ` + "`\"...\" + n`" + ` in a message, ` + "`v, err := f()`" + ` of a function of one value, ` + "`string(b)`" + ` of bytes added to a text one by one | what Go has for it |
| an order as a bool for slices.SortFunc, one of elements for sort.Slice, one of places for slices.SortFunc, one for sort.Strings; ` + "`return b - a`" + ` of float64 in it; ` + "`sort.Sort(sort.Reverse(list))`" + `; ` + "`slices.Max(list...)`" + `, ` + "`math.Max(list)`" + ` | the function for that order; cmp.Compare. Not a greatest element by an order that begins with the greater |
| ` + "`slices.Filter`" + `, ` + "`lo.Map`" + `, ` + "`lo.Sum`" + ` and the like, ` + "`strings.Reverse(s)`" + `, ` + "`s.padStart(3, \"0\")`" + `, ` + "`divmod(a, b)`" + `, ` + "`list.sort()`" + `, ` + "`list.includes(x)`" + `, ` + "`m.get(k, 0)`" + `, ` + "`m.has(k)`" + `, ` + "`set()`" + `, ` + "`x not in m`" + `, ` + "`for x in list`" + `, ` + "`enumerate(list)`" + `, ` + "`x**2`" + ` of float64 | Go, or a function of that meaning at the end of the program. Not the parts of a text or a list between two places, which other languages count in their own ways, nor loops over what other languages keep in the order of insertion |
| ` + "`x := nil`" + `; ` + "`m[k] == nil`" + ` of members without a nil, ` + "`t == nil`" + ` of a result without a nil whose error is looked at or was forgotten; a value for a pointer and the reverse; ` + "`m := map[string]int`" + `, ` + "`make([]any)`" + `, ` + "`a, b := false`" + `; a variable that hides a function, such as max; ` + "`day.Year - 1`" + `; ` + "`recurgent.Error{Type: ..., Message: ...}`" + ` | a variable of any; whether the key is there; the check of the error; the address, or what it leads to; the empty value; the value twice; another name; the call; recurgent.Fail |
| ` + "`len(x)`" + ` and ` + "`x[i]`" + ` of JSON, ` + "`a[\"n\"] * b[\"n\"]`" + `, ` + "`n += 1.5`" + ` of a member of the memory; ` + "`strconv.Atoi(call.Arg(0, \"n\"))`" + `; ` + "`x := 0`" + ` that is set to float64 alone; ` + "`n / 60`" + ` beside ` + "`n % 60`" + ` of JSON, for units of time; ` + "`string(n)`" + ` of a length or a digit; ` + "`hours + \"h \"`" + ` in a program without characters | a text where its characters are looked at, else the list or the object; the product, the sum; a number or its text; 0.0; an int; strconv.Itoa |
| fields in small letters of a struct that Run returns, where all are; a type of the program that is an object or a list of JSON, asserted of JSON; ` + "`T`" + ` outside its function; ` + "`sum := 0`" + ` of float64 that is divided by a length; ` + "`d.Minutes()`" + ` of a duration, and ` + "`a / b`" + ` beside ` + "`a % b`" + `, where an int is wanted; the value that is printed before ` + "`return nil, nil`" + `, where nothing else is returned | capital letters, with the names as tags; another name of it; any; ` + "`0.0`" + `; int of it; the value |
| ` + "`" + `unicode.IsUpper(s[i])` + "`" + ` of a byte of a text, ` + "`" + `rows[y][x] = '#'` + "`" + ` of a list of texts; ` + "`" + `int(b)` + "`" + ` of a bool; ` + "`" + `c - "0"` + "`" + `, ` + "`" + `int(string(c) - "0")` + "`" + `, ` + "`" + `strconv.Atoi(s[i])` + "`" + ` | the character, and the text put together anew: a byte beyond ASCII ends the run; 1 or 0; ` + "`" + `c - '0'` + "`" + `, ` + "`" + `string(rune(s[i]))` + "`" + ` |
| ` + "`" + `total * (1 - p/100)` + "`" + ` of an int p beside float64, ` + "`" + `math.Round(a/b*100)` + "`" + ` and ` + "`" + `math.Ceil(a/b)` + "`" + ` of ints; ` + "`" + `total += m["price"] * count` + "`" + ` of a float64; ` + "`" + `total := 0` + "`" + ` of float64 that ` + "`" + `%.2f` + "`" + ` prints | the fraction; float64 |
| ` + "`" + `fmt.Sprint(t.Hour)` + "`" + `, ` + "`" + `map[string]any{"hour": t.Hour}` + "`" + `, ` + "`" + `x += d.Hours` + "`" + ` of a function or method without parameters; ` + "`" + `walk := func(...) { walk(...) }` + "`" + ` | its call; ` + "`" + `var walk func(...)` + "`" + ` first |
| ` + "`" + `append(a, b)` + "`" + ` of two lists; ` + "`" + `append(list, maps.Values(m)...)` + "`" + ` of a list that is sorted; ` + "`" + `strings.Join(",", list)` + "`" + `, ` + "`" + `slices.Contains(x, list)` + "`" + ` and other calls whose two arguments fit only in the other order; ` + "`" + `strings.ToLower(d.Weekday())` + "`" + ` | ` + "`" + `b...` + "`" + `; slices.Collect; the other order; its name |
| ` + "`" + `if list` + "`" + `, ` + "`" + `if !list` + "`" + `, ` + "`" + `if a && text` + "`" + ` of a list, a map, a text, a number, a pointer or an error | ` + "`" + `len(list) != 0` + "`" + `, ` + "`" + `text != ""` + "`" + `, ` + "`" + `n != 0` + "`" + `, ` + "`" + `p != nil` + "`" + ` |
| ` + "`" + `n, err := f()` + "`" + ` in a block that does not read n, where an n further out is read later; ` + "`" + `m[a][b] += v` + "`" + ` where nothing makes ` + "`" + `m[a]` + "`" + `; ` + "`" + `for line := range lines` + "`" + ` where each use is of a text; ` + "`" + `constraints.Ordered` + "`" + ` of golang.org/x/exp | ` + "`" + `n` + "`" + ` is set; the inner map made first; the items; cmp.Ordered |
| exported fields without tags of a struct that Run returns, where the purpose lists all of them in braces otherwise and the program does not read or write such JSON itself: ` + "`" + `{name, unit_price}` + "`" + ` | tags of those names |
| ` + "`" + `doc, err := resp.JSON()` + "`" + `, ` + "`" + `resp.JSON(&doc)` + "`" + `, ` + "`" + `resp.Text()` + "`" + ` | the JSON of its Body; Body |

Refused by name, though they compile: an assertion of JSON that never holds and is not corrected, ` + "`%s`" + ` of a number, ` + "`string(n)`" + ` of another int, a new variable that hides another one and is not read, a comment in the place of code, a struct whose fields JSON cannot fill, a character of a text as the value, an error of strconv or time.Parse that nothing looks at, a function with parameters that is printed or stored as a value, exported fields without tags of a struct without a name that Run returns, where the purpose lists all of them in braces otherwise; in a corrected program also a division of integers without its remainder, a list that may be returned as null, and one that is made with a length and then appended to.`
