package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// serviceMonitor is the part of the Prometheus operator's type that the manifest uses.
type serviceMonitor struct {
	APIVersion, Kind string
	Metadata         struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Selector  struct{ MatchLabels map[string]string }
		Endpoints []struct {
			Port, Path, Interval string
			Authorization        struct {
				Type        string
				Credentials core.SecretKeySelector
			}
		}
	}
}

// A cluster is what the manifests make.
type cluster struct {
	account core.ServiceAccount
	config  core.ConfigMap
	service core.Service
	set     apps.StatefulSet
	policy  networking.NetworkPolicy
	monitor serviceMonitor
}

// deployed builds a kustomization as kubectl -k does, and decodes every object strictly into its type: an unknown
// field, a field of another type and one that appears twice are errors.
func deployed(t *testing.T, dir string) cluster {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("kustomize %s: %v", dir, err)
	}
	var c cluster
	kinds := map[string]any{"v1/ServiceAccount": &c.account, "v1/ConfigMap": &c.config, "v1/Service": &c.service,
		"apps/v1/StatefulSet":                &c.set,
		"networking.k8s.io/v1/NetworkPolicy": &c.policy, "monitoring.coreos.com/v1/ServiceMonitor": &c.monitor}
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		kind := r.GetApiVersion() + "/" + r.GetKind()
		into, ok := kinds[kind]
		if !ok {
			t.Fatalf("%s is of the kind %s", r.GetName(), kind)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		delete(kinds, kind)
	}
	for kind := range kinds {
		if !strings.HasSuffix(kind, "ServiceMonitor") {
			t.Errorf("%s has no %s", dir, kind)
		}
	}
	return c
}

const kubernetes = "../kubernetes"

// Each manifest as it lies there, strictly; and every file belongs to a kustomization.
func TestManifestsDecode(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(kubernetes + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c cluster
	into := map[string]any{"serviceaccount": &c.account, "configmap": &c.config, "service": &c.service,
		"statefulset": &c.set, "networkpolicy": &c.policy}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".yaml")
		if name == "kustomization" {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if into[name] == nil {
			t.Fatalf("%s: nobody decodes it", f)
		}
		if err := yaml.UnmarshalStrict(data, into[name]); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	// The test can fail.
	if err := yaml.UnmarshalStrict([]byte("apiVersion: apps/v1\nkind: StatefulSet\nspec: {replica: 1}"),
		&apps.StatefulSet{}); err == nil {
		t.Error("an unknown field is not seen")
	}
	deployed(t, kubernetes)
	if m := deployed(t, kubernetes+"-monitoring").monitor; m.Kind != "ServiceMonitor" {
		t.Errorf("no ServiceMonitor: %+v", m)
	}
}

// Probes, security context, network policy and claim are there, and leave runners what they need.
func TestManifestsAreHardened(t *testing.T) {
	t.Parallel()
	c := deployed(t, kubernetes)
	pod := c.set.Spec.Template.Spec
	container := pod.Containers[0]
	if c.set.Spec.Replicas == nil || *c.set.Spec.Replicas != 1 {
		t.Error("one daemon holds a data directory: there is one replica")
	}
	p, s := pod.SecurityContext, container.SecurityContext
	user := dockerfile(t, "USER")[0]
	if !*p.RunAsNonRoot || user != "65532:65532" || *p.RunAsUser != 65532 || *p.RunAsGroup != 65532 ||
		*p.FSGroup != 65532 || p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod: %+v, and the image's user is %s", p, user)
	}
	if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || *s.Privileged ||
		!slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
		t.Errorf("container: %+v", s)
	}
	if *pod.AutomountServiceAccountToken || *c.account.AutomountServiceAccountToken ||
		pod.ServiceAccountName != c.account.Name || pod.HostNetwork || pod.HostPID {
		t.Error("the pod has a way into the cluster or the node")
	}
	for name, probe := range map[string]*core.Probe{"startup": container.StartupProbe,
		"readiness": container.ReadinessProbe, "liveness": container.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || !openRoutes(t)[probe.HTTPGet.Path] ||
			probe.HTTPGet.Port.StrVal != container.Ports[0].Name {
			t.Errorf("the %s probe asks what the daemon does not answer without a token: %+v", name, probe)
		}
	}
	if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
		t.Error("no limit of memory, or no share of processors")
	}
	claims := c.set.Spec.VolumeClaimTemplates
	if len(claims) != 1 || claims[0].Spec.AccessModes[0] != core.ReadWriteOnce ||
		claims[0].Spec.Resources.Requests.Storage().IsZero() {
		t.Errorf("claims %+v", claims)
	}
	if got := *pod.TerminationGracePeriodSeconds; got < 15 {
		t.Errorf("the daemon may take 10 s to end, and has %d", got)
	}
	n := c.policy.Spec
	if len(n.PolicyTypes) != 2 || len(n.Ingress) != 1 || n.Ingress[0].Ports[0].Port.StrVal != container.Ports[0].Name ||
		!slices.Contains(n.Egress[1].To[0].IPBlock.Except, "169.254.0.0/16") {
		t.Errorf("network policy %+v", n)
	}
}

// Ports, paths, environment and settings that the manifests name exist in the binary and in the image.
func TestManifestsFitTheBinary(t *testing.T) {
	t.Parallel()
	b, c := theBinary(t), deployed(t, kubernetes+"-monitoring")
	container := c.set.Spec.Template.Spec.Containers[0]
	b.wantCommand(t, container.Args...)
	config := b.wantConfig(t, c.config.Data["config.yaml"])
	mounts := map[string]string{} // volume by path
	for _, m := range container.VolumeMounts {
		mounts[m.MountPath] = m.Name
	}
	for _, e := range container.Env {
		if !b.env[e.Name] {
			t.Errorf("the daemon is given %s, which it does not read", e.Name)
		}
		if e.Name == "RECURGENT_CONFIG" && (filepath.Base(e.Value) != "config.yaml" ||
			mounts[filepath.Dir(e.Value)] != "config") {
			t.Errorf("the configuration file is not at %s", e.Value)
		}
	}
	if mounts[config["data-dir"].(string)] != c.set.Spec.VolumeClaimTemplates[0].Name {
		t.Errorf("the claim is not at %v", config["data-dir"])
	}
	if mounts[filepath.Dir(config["auth-tokens-file"].(string))] != "tokens" {
		t.Errorf("the tokens are not at %v", config["auth-tokens-file"])
	}
	if port := dockerfile(t, "EXPOSE")[0]; !strings.HasSuffix(config["listen"].(string), ":"+port) ||
		container.Ports[0].ContainerPort != 8420 || c.service.Spec.Ports[0].Port != 8420 {
		t.Errorf("the image has the port %s, the configuration %v", port, config["listen"])
	}
	labels := c.set.Spec.Template.Labels
	for name, selector := range map[string]map[string]string{"service": c.service.Spec.Selector,
		"set":    c.set.Spec.Selector.MatchLabels,
		"policy": c.policy.Spec.PodSelector.MatchLabels, "monitor": c.monitor.Spec.Selector.MatchLabels} {
		for k, v := range selector {
			if labels[k] != v {
				t.Errorf("the %s does not select the pod: %v", name, selector)
			}
		}
		if len(selector) == 0 {
			t.Errorf("the %s selects everything", name)
		}
	}
	if _, known := openRoutes(
		t)[c.monitor.Spec.Endpoints[0].Path]; !known ||
		c.monitor.Spec.Endpoints[0].Port != c.service.Spec.Ports[0].Name ||
		c.service.Labels["app.kubernetes.io/name"] == "" {
		t.Errorf("Prometheus does not find the metrics: %+v", c.monitor.Spec)
	}
}
