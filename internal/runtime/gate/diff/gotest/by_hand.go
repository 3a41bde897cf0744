package gotest

import "strings"

// byHand says why tests that could run do not: what they are about is not the language, or no program here can do.
func byHand() map[string]string {
	return map[string]string{
		"args.go":                 "reads the command line",
		"env.go":                  "reads the environment",
		"fixedbugs/issue19040.go": "compares the path of its package, which here is another one natively",
		"maplinear.go":            "measures time",
		"rename.go":               "gives another meaning to every predeclared name, without which no Run can be added",
		"typeparam/issue49547.go": "compares the path of its package, which here is another one natively",
	}
}

// smaller says what is changed in tests that are too much work for the slower engine, or nested deeper than it allows: an old text and a
// new one.
func smaller() map[string][2]string {
	return map[string][2]string{
		"abi/fibish.go":           {"x := 40", "x := 20"},
		"abi/fibish_closure.go":   {"x := 40", "x := 20"},
		"abi/uglyfib.go":          {"x := 40", "x := 20"},
		"divmod.go":               {"gen2(2, 64, 1, 64", "gen2(1, 64, 1, 64"},
		"fixedbugs/issue16249.go": {"i < 1000", "i < 300"},
		"ken/modconst.go":         {"Count = 1e5", "Count = 1e4"},
		"peano.go":                {"max := 9", "max := 7"},
	}
}

// otherwise says why programs print something else than their tests, natively too.
func otherwise() map[string]string {
	return map[string]string{
		"deferprint.go":           "the words of println for nil",
		"print.go":                "the words of println for nil",
		"fixedbugs/issue43444.go": "one more package variable, the buffer, changes the order of initialisation",
	}
}

// Adapted returns the program that a test becomes, or why it becomes none. output runs a test that writes the program to be run.
func Adapted(name, source string, output func(args []string) (string, error)) (program, why string) {
	if why := Left(name, source); why != "" {
		return "", why
	}
	if why := byHand()[name]; why != "" {
		return "", why
	}
	if args, ok := WritesProgram(source); ok {
		written, err := output(args)
		if err != nil {
			return "", "writes no program: " + err.Error()
		}
		source = written
	}
	if change, ok := smaller()[name]; ok {
		if !strings.Contains(source, change[0]) {
			return "", "does not contain " + change[0] + " any more"
		}
		source = strings.ReplaceAll(source, change[0], change[1])
	}
	if len(source) > maxProgram {
		return "", "is longer than a program may be, 64 KiB"
	}
	program, err := Adapt(source)
	if err != nil {
		return "", "does not parse: " + err.Error()
	}
	return program, ""
}

const maxProgram = 64 << 10

// PrintsOtherwise reports whether a program may print something else than its test.
func PrintsOtherwise(name string) bool {
	_, less := smaller()[name]
	return less || otherwise()[name] != ""
}
