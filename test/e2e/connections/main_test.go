// Package connections tests that programs use APIs with secrets which nothing but the requests to these APIs holds.
package connections

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
