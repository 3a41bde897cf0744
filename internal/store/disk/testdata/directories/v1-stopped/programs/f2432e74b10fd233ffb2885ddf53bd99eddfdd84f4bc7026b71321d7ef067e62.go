package tool

import (
	"fmt"
	"strings"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	lines := []string{}
	for _, r := range call.History() {
		args := make([]string, len(r.Args))
		for i, a := range r.Args {
			args[i] = fmt.Sprint(a)
		}
		lines = append(lines, fmt.Sprintf("%s(%s): %v", r.MethodName, strings.Join(args, ", "), r.OutcomeSummary["status"]))
	}
	return lines, nil
}
