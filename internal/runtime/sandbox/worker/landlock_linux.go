package worker

import "strings"

func isOn(state string) bool { return strings.HasPrefix(state, "on") }
