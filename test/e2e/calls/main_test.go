// Package calls tests what one call does and what it leaves: forging, context, names, failures and whom they count against,
// questions to the model, streams.
package calls

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
