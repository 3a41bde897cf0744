package deploy

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// What daemon and runners take at worst (docs/deployment.md, Memory) fits the limits that are deployed.
func TestMemoryFitsItsLimits(t *testing.T) {
	t.Parallel()
	var compose struct {
		Services map[string]struct {
			Environment map[string]string `yaml:"environment"`
			MemLimit    string            `yaml:"mem_limit"`
		} `yaml:"services"`
	}
	unmarshal(t, "compose.yaml", &compose)
	daemon := compose.Services["recurgentd"]
	wantRoom(t, "compose.yaml", daemon.Environment["RECURGENT_RUNNERS"], daemon.MemLimit)

	var config struct {
		Data map[string]string `yaml:"data"`
	}
	unmarshal(t, "kubernetes/configmap.yaml", &config)
	var settings struct {
		Runners string `yaml:"runners"`
	}
	if err := yaml.Unmarshal([]byte(config.Data["config.yaml"]), &settings); err != nil {
		t.Fatal(err)
	}
	var set struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Resources struct {
							Limits map[string]string `yaml:"limits"`
						} `yaml:"resources"`
					} `yaml:"containers"`
				} `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	unmarshal(t, "kubernetes/statefulset.yaml", &set)
	wantRoom(t, "kubernetes", settings.Runners, set.Spec.Template.Spec.Containers[0].Resources.Limits["memory"])

	unit, err := os.ReadFile("systemd/recurgentd.service")
	if err != nil || !strings.Contains(string(unit), "\nMemoryMax=") {
		t.Errorf("the unit sets no MemoryMax (%v)", err)
	}
}

func unmarshal(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func wantRoom(t *testing.T, where, runners, limit string) {
	t.Helper()
	n, err := strconv.ParseInt(runners, 10, 64)
	if err != nil {
		t.Errorf("%s sets no number of runners: %v", where, err)
		return
	}
	gigabytes, err := strconv.ParseInt(strings.TrimRight(limit, "gGi"), 10, 64)
	if err != nil {
		t.Errorf("%s: the memory limit %q: %v", where, limit, err)
		return
	}
	room, o := gigabytes<<30, sandbox.DefaultOptions()
	need := min(room/2, 1<<30) + 2*n*o.Memory + room/4
	if need > room {
		t.Errorf("%s: daemon and runners take %d MiB at worst, its limit is %d MiB", where, need>>20, room>>20)
	}
}
