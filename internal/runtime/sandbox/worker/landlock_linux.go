package worker

import (
	"fmt"
	"strings"
)

func landlockOn(abi int) string { return fmt.Sprintf("on (abi %d)", abi) }

func isOn(state string) bool { return strings.HasPrefix(state, "on") }
