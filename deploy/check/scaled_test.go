package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Three replicas that reach each other, a database with a standby, and a balancer: by profile only.
func TestScaledCompose(t *testing.T) {
	t.Parallel()
	b, p := theBinary(t), project(t, "scaled")
	want := []string{"balancer", "grafana", "postgres-primary", "postgres-standby", "prometheus", "recurgentd",
		"replica-1", "replica-2", "replica-3"}
	if got := p.ServiceNames(); !slices.Equal(got, want) {
		t.Errorf("services %q, want %q", got, want)
	}
	if got := project(t).ServiceNames(); slices.Contains(got, "replica-1") {
		t.Errorf("replicas start without their profile: %q", got)
	}
	balancer, err := os.ReadFile("../compose/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range want[6:] {
		s := p.Services[name]
		for variable := range s.Environment {
			if !b.env[variable] {
				t.Errorf("%s is given %s, which it does not read", name, variable)
			}
		}
		if got := s.Environment["RECURGENT_ADVERTISE"]; got == nil || *got != name+":8430" {
			t.Errorf("%s is reached by the others at %v", name, got)
		}
		for _, variable := range []string{"RECURGENT_STORE_FILE", "RECURGENT_CLUSTER_CA", "RECURGENT_CLUSTER_CERT",
			"RECURGENT_CLUSTER_KEY", "RECURGENT_AUTH_TOKENS_FILE"} {
			path := s.Environment[variable]
			if path == nil || !slices.ContainsFunc(s.Secrets,
				func(c types.ServiceSecretConfig) bool { return "/run/secrets/"+c.Source == *path }) {
				t.Errorf("%s finds no secret at %s", name, variable)
			}
		}
		if !strings.Contains(string(balancer), "server "+name+":8420") {
			t.Errorf("the balancer does not know %s", name)
		}
	}
}

// What scripts/cluster-secrets makes is what the files of the profile name. It makes it once.
func TestScaledSecrets(t *testing.T) {
	t.Parallel()
	dir, p := t.TempDir(), project(t, "scaled")
	for range 2 {
		if out, err := exec.CommandContext(t.Context(), "../../scripts/cluster-secrets",
			dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for name, s := range p.Secrets {
		if data, err := os.ReadFile(filepath.Join(dir, filepath.Base(s.File))); err != nil || len(data) < 24 {
			t.Errorf("the secret %s (%s): %d bytes, %v", name, s.File, len(data), err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(p.Secrets) {
		t.Errorf("%d files for %d secrets (%v)", len(files), len(p.Secrets), err)
	}
	url, err := os.ReadFile(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	password, err := os.ReadFile(filepath.Join(dir, "postgres_password"))
	if err != nil || !strings.Contains(string(url), ":"+string(password)+"@postgres-primary,postgres-standby/") {
		t.Errorf("the URL has another password or other servers (%v)", err)
	}
	if out, err := exec.CommandContext(t.Context(), "openssl", "verify", "-CAfile", filepath.Join(dir, "cluster_ca"),
		filepath.Join(dir, "cluster_cert")).CombinedOutput(); err != nil {
		t.Errorf("the certificate is not the authority's: %v\n%s", err, out)
	}
}

// scaled are the objects of the overlay, each strictly decoded.
type scaled struct {
	deployment apps.Deployment
	budget     disruption.PodDisruptionBudget
	scaler     autoscaling.HorizontalPodAutoscaler
	policy     networking.NetworkPolicy
	config     core.ConfigMap
}

func theScaled(t *testing.T) scaled {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), kubernetes+"-scaled")
	if err != nil {
		t.Fatal(err)
	}
	var s scaled
	into := map[string]any{"ServiceAccount": &core.ServiceAccount{}, "Service": &core.Service{}, "ConfigMap": &s.config,
		"NetworkPolicy": &s.policy,
		"Deployment":    &s.deployment, "PodDisruptionBudget": &s.budget, "HorizontalPodAutoscaler": &s.scaler}
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		target, ok := into[r.GetKind()]
		if !ok {
			t.Errorf("there is a %s, which nobody wants", r.GetKind())
			continue
		}
		if err := yaml.UnmarshalStrict(text, target); err != nil {
			t.Errorf("%s: %v", r.GetKind(), err)
		}
		delete(into, r.GetKind())
	}
	for kind := range into {
		t.Errorf("there is no %s", kind)
	}
	return s
}

// A Deployment with the database's URL and the certificates from Secrets, a budget and a scaler that mean its pods, and
// no database.
func TestScaledManifests(t *testing.T) {
	t.Parallel()
	b, s := theBinary(t), theScaled(t)
	pod := s.deployment.Spec.Template.Spec
	container := pod.Containers[0]
	mounts := map[string]core.Volume{}
	for _, m := range container.VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			t.Fatalf("there is no volume %s", m.Name)
		}
		mounts[m.MountPath] = pod.Volumes[i]
	}
	env := map[string]core.EnvVar{}
	for _, e := range container.Env {
		if env[e.Name] = e; e.Name != "POD_IP" && !b.env[e.Name] {
			t.Errorf("the daemon is given %s, which it does not read", e.Name)
		}
	}
	for variable, secret := range map[string]string{"RECURGENT_STORE_FILE": "recurgentd-store",
		"RECURGENT_CLUSTER_CA":   "recurgentd-cluster",
		"RECURGENT_CLUSTER_CERT": "recurgentd-cluster", "RECURGENT_CLUSTER_KEY": "recurgentd-cluster"} {
		if v := mounts[filepath.Dir(env[variable].Value)]; v.Secret == nil || v.Secret.SecretName != secret {
			t.Errorf("%s is not in the Secret %s: %+v", variable, secret, v)
		}
	}
	if got := env["RECURGENT_ADVERTISE"].Value; got != "$(POD_IP):8430" || container.Ports[1].Name != "cluster" ||
		container.Ports[1].ContainerPort != 8430 {
		t.Errorf("the replica is reached at %s, and has the ports %+v", got, container.Ports)
	}
	if s.deployment.Spec.Replicas != nil || len(pod.Volumes) != len(mounts) || mounts["/data"].EmptyDir == nil {
		t.Error("the number of replicas is the scaler's, and a replica keeps nothing")
	}
	for name, selector := range map[string]map[string]string{"budget": s.budget.Spec.Selector.MatchLabels,
		"deployment": s.deployment.Spec.Selector.MatchLabels} {
		for k, v := range selector {
			if s.deployment.Spec.Template.Labels[k] != v {
				t.Errorf("the %s does not select the pods", name)
			}
		}
	}
	metric := s.scaler.Spec.Metrics[0].Pods
	if s.scaler.Spec.ScaleTargetRef.Name != s.deployment.Name || *s.scaler.Spec.MinReplicas < 2 || metric == nil {
		t.Fatalf("the scaler: %+v", s.scaler.Spec)
	}
	if doc, err := os.ReadFile(
		"../../docs/observability.md"); err != nil || !strings.Contains(string(doc), "`"+metric.Metric.Name+"`") {
		t.Errorf("the daemon has no metric %s (%v)", metric.Metric.Name, err)
	}
	if got := len(s.policy.Spec.Ingress) + len(s.policy.Spec.Egress); got != 6 {
		t.Errorf("the network policy has %d rules", got)
	}
	single := deployed(t, kubernetes).set.Spec.Template.Spec.Containers[0]
	if a, b := container.SecurityContext, single.SecurityContext; a.String() != b.String() {
		t.Errorf("a replica is confined otherwise than a single daemon: %s", a)
	}
}
