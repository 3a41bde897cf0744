package cli

import (
	"encoding/xml"
	"fmt"
)

// Elements of a JUnit report that build servers read.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		File    string     `xml:"file,attr"`
		Line    int        `xml:"line,attr"`
		Seconds string     `xml:"time,attr"`
		Failure *junitText `xml:"failure"`
		Skipped *junitText `xml:"skipped"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
	}
)

// junitReport returns a report with one suite per file.
func junitReport(all []tested) ([]byte, error) {
	var report junitSuites
	for i := range all {
		x := &all[i]
		if i == 0 || all[i-1].File != x.File {
			report.Suites = append(report.Suites, junitSuite{Name: x.File})
		}
		s := &report.Suites[len(report.Suites)-1]
		s.Tests++
		c := junitCase{Class: x.Role + "." + x.Method, Name: x.name(), File: x.File, Line: x.Line,
			Seconds: fmt.Sprintf("%.6f", x.DurationMs/1000)}
		switch x.Result {
		case "failed":
			s.Failures++
			c.Failure = &junitText{x.detail()}
		case "skipped":
			s.Skipped++
			c.Skipped = &junitText{x.detail()}
		}
		s.Cases = append(s.Cases, c)
	}
	data, err := xml.MarshalIndent(report, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}
