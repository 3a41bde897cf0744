package native_test

import "testing"

// Compiled programs know the time zones that programs on the engine know (TestZones in test/e2e/tools compares these with the toolchain's).
func TestZonesNatively(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	t.Parallel()
	const source = `package tool

import (
	"recurgent"
	"time"
)

func Run(call *recurgent.Call) (any, error) {
	zone, err := time.LoadLocation(call.Args[0].(string))
	if err != nil {
		return err.Error(), nil
	}
	return time.Unix(1790000000, 0).In(zone).Format(time.RFC1123Z), nil
}
`
	calls := []string{`["Europe/Berlin"]`, `["America/St_Johns"]`, `["Asia/Kathmandu"]`, `["UTC"]`, `["Local"]`, `["Europe/Nowhere"]`, `["../etc"]`}
	if refused := differences(t, []sample{{"zones", source, calls}}); refused != 0 {
		t.Error("the program has no native form")
	}
}
