package check

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"
)

func project(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{"../compose.yaml"}, cli.WithProfiles(profiles),
		cli.WithEnv([]string{"OPENAI_API_KEY=sk-x", "RECURGENT_MODEL="}), cli.WithLoadOptions())
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(context.Background())
	if err != nil {
		t.Fatalf("deploy/compose.yaml against the Compose specification: %v", err)
	}
	return p
}

// Daemon, Prometheus, Grafana provisioned, optional Ollama; pinned, healthy, confined.
func TestCompose(t *testing.T) {
	t.Parallel()
	p := project(t, "ollama")
	if got, want := p.ServiceNames(), []string{"grafana", "ollama", "prometheus",
		"recurgentd"}; !slices.Equal(got, want) {
		t.Errorf("services %q, want %q", got, want)
	}
	if got := project(t).ServiceNames(); slices.Contains(got, "ollama") {
		t.Errorf("Ollama starts without its profile: %q", got)
	}
	pinned := regexp.MustCompile(`^[a-z/]+:v?[0-9]+\.[0-9]+(\.[0-9]+)?$`)
	for name, s := range p.Services {
		if s.Build == nil && !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %s is not pinned", name, s.Image)
		}
		if s.HealthCheck == nil || len(s.HealthCheck.Test) < 2 || s.HealthCheck.Timeout == nil {
			t.Errorf("%s has no health check", name)
		}
		if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || !slices.Contains(s.SecurityOpt,
			"no-new-privileges:true") || s.Privileged || s.Restart == "" {
			t.Errorf("%s is not confined: read_only %v, cap_drop %v, security_opt %v", name, s.ReadOnly, s.CapDrop,
				s.SecurityOpt)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %d is open to others", name, port.Target)
			}
		}
		for _, v := range s.Volumes {
			if v.Type == "bind" {
				if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
					t.Errorf("%s: %s is bound and is not there, or not read-only: %v", name, v.Source, err)
				}
			} else if _, ok := p.Volumes[v.Source]; !ok {
				t.Errorf("%s: there is no volume %s", name, v.Source)
			}
		}
	}
}

func TestComposeFitsTheBinary(t *testing.T) {
	t.Parallel()
	b, p := theBinary(t), project(t, "ollama")
	d := p.Services["recurgentd"]
	for name := range d.Environment {
		if !b.env[name] {
			t.Errorf("the daemon is given %s, which it does not read", name)
		}
	}
	if got := d.Environment["RECURGENT_MODEL"]; got == nil || *got != "gpt-4.1" {
		t.Errorf("without a model named it is asked for %v", got)
	}
	if d.HealthCheck.Test[0] != "CMD" || d.HealthCheck.Test[1] != "/recurgentd" {
		t.Fatalf("health check %q", d.HealthCheck.Test)
	}
	b.wantCommand(t, d.HealthCheck.Test[2:]...)
	if expose := dockerfile(t, "EXPOSE"); !slices.Equal(expose, []string{"8420"}) || d.Ports[0].Target != 8420 {
		t.Errorf("the image has the ports %q, the service %d", expose, d.Ports[0].Target)
	}
	if volumes := dockerfile(t, "VOLUME"); len(d.Volumes) != 1 || volumes[0] != d.Volumes[0].Target {
		t.Errorf("the image keeps its state in %q", volumes)
	}
	if _, err := os.Stat(filepath.Join(d.Build.Context, "Dockerfile")); err != nil {
		t.Error(err)
	}
}

// What scripts/compose-secrets makes is what the files of compose.yaml name, and Prometheus is let in with its token.
func TestComposeSecrets(t *testing.T) {
	t.Parallel()
	dir, p := t.TempDir(), project(t)
	if out, err := exec.CommandContext(t.Context(), "../../scripts/compose-secrets", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	used := map[string]bool{}
	for _, s := range p.Services {
		for _, secret := range s.Secrets {
			used[secret.Source] = true
		}
	}
	for name, s := range p.Secrets {
		if !used[name] {
			continue // of another profile
		}
		if data, err := os.ReadFile(filepath.Join(dir,
			filepath.Base(s.File))); err != nil || len(data) < 24 || filepath.Base(filepath.Dir(s.File)) != "secrets" {
			t.Errorf("the secret %s (%s): %d bytes, %v", name, s.File, len(data), err)
		}
	}
	tokens, err := os.ReadFile(filepath.Join(dir, "tokens"))
	if err != nil {
		t.Fatal(err)
	}
	prometheus, err := os.ReadFile(filepath.Join(dir, "prometheus_token"))
	if err != nil || !strings.Contains(string(tokens), "prometheus "+string(prometheus)+"\n") {
		t.Errorf("Prometheus has no token of the daemon's: %v", err)
	}
	before := string(tokens)
	if err := exec.CommandContext(t.Context(), "../../scripts/compose-secrets", dir).Run(); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "tokens")); string(after) != before {
		t.Error("a second run changes the tokens")
	}
}

// Prometheus scrapes the daemon by its service's name, and Grafana finds data source and dashboards.
func TestComposeIsWired(t *testing.T) {
	t.Parallel()
	p := project(t)
	var scrape struct {
		RuleFiles     []string `json:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string `json:"job_name"`
			Authorization struct {
				CredentialsFile string `json:"credentials_file"`
			} `json:"authorization"`
			StaticConfigs []struct{ Targets []string } `json:"static_configs"`
		} `json:"scrape_configs"`
	}
	readYAML(t, "../compose/prometheus.yml", &scrape)
	job := scrape.ScrapeConfigs[0]
	host, port, _ := strings.Cut(job.StaticConfigs[0].Targets[0], ":")
	if _, ok := p.Services[host]; !ok || port != "8420" || job.JobName != "recurgentd" {
		t.Errorf("Prometheus scrapes %+v", job)
	}
	if secret := filepath.Base(job.Authorization.CredentialsFile); !hasSecret(p.Services["prometheus"], secret) {
		t.Errorf("Prometheus has no secret %s", secret)
	}
	if secret := filepath.Base(
		*p.Services["grafana"].Environment["GF_SECURITY_ADMIN_PASSWORD__FILE"]); !hasSecret(p.Services["grafana"],
		secret) {
		t.Errorf("Grafana has no secret %s", secret)
	}
	if secret := filepath.Base(
		*p.Services["recurgentd"].Environment["RECURGENT_AUTH_TOKENS_FILE"]); !hasSecret(p.Services["recurgentd"],
		secret) {
		t.Errorf("the daemon has no secret %s", secret)
	}
	var sources struct {
		Datasources []struct{ UID, Type, URL string }
	}
	readYAML(t, "../grafana/provisioning/datasources/prometheus.yaml", &sources)
	if s := sources.Datasources[0]; s.URL != "http://prometheus:9090" || s.Type != "prometheus" {
		t.Errorf("Grafana asks %+v", s)
	}
	var boards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	readYAML(t, "../grafana/provisioning/dashboards/recurgentd.yaml", &boards)
	mounted := slices.ContainsFunc(p.Services["grafana"].Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Target == boards.Providers[0].Options.Path && strings.HasSuffix(v.Source, "grafana/dashboards")
	})
	if !mounted {
		t.Errorf("the dashboards are not where Grafana looks: %s", boards.Providers[0].Options.Path)
	}
}

func hasSecret(s types.ServiceConfig, name string) bool {
	return slices.ContainsFunc(s.Secrets, func(c types.ServiceSecretConfig) bool { return c.Source == name })
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
