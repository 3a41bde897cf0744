package check

import (
	"maps"
	"path"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// charted is what the chart makes of the values under the release's name: a cluster and, where the values want one, an
// ingress. Every object is decoded strictly into its type.
func charted(t *testing.T, release, values string) (cluster, *networking.Ingress, error) {
	t.Helper()
	chart, err := loader.Load("../helm")
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: release, Namespace: "tools",
		IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return cluster{}, nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return cluster{}, nil, err
	}
	var c cluster
	var ingress networking.Ingress
	into := map[string]any{"serviceaccount.yaml": &c.account, "configmap.yaml": &c.config, "service.yaml": &c.service,
		"statefulset.yaml":   &c.set,
		"networkpolicy.yaml": &c.policy, "servicemonitor.yaml": &c.monitor, "ingress.yaml": &ingress}
	for name, text := range files {
		object := into[path.Base(name)]
		switch {
		case path.Base(name) == "NOTES.txt" && strings.Contains(text, "port-forward"):
		case object == nil:
			t.Fatalf("nobody decodes %s", name)
		default:
			if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		}
	}
	return c, &ingress, nil
}

// The chart with its own values makes what the manifests do: hardened as they are, fitting the binary as they do.
func TestChartMakesTheManifests(t *testing.T) {
	t.Parallel()
	chart, _, err := charted(t, "recurgentd", "serviceMonitor: {enabled: true}")
	if err != nil {
		t.Fatal(err)
	}
	plain := deployed(t, kubernetes+"-monitoring")
	labels := chart.set.Spec.Template.Labels
	for name, selector := range map[string]map[string]string{"service": chart.service.Spec.Selector,
		"set":    chart.set.Spec.Selector.MatchLabels,
		"policy": chart.policy.Spec.PodSelector.MatchLabels, "monitor": chart.monitor.Spec.Selector.MatchLabels} {
		if !maps.Equal(selector, labels) {
			t.Errorf("the %s does not select the pod: %v", name, selector)
		}
	}
	pod, want := chart.set.Spec.Template.Spec, plain.set.Spec.Template.Spec
	pod.Containers[0].Image = want.Containers[0].Image // appVersion and kustomization.yaml name it
	for what, pair := range map[string][2]any{
		"pod": {pod, want}, "claims": {chart.set.Spec.VolumeClaimTemplates, plain.set.Spec.VolumeClaimTemplates},
		"replicas":  {chart.set.Spec.Replicas, plain.set.Spec.Replicas},
		"ports":     {chart.service.Spec.Ports, plain.service.Spec.Ports},
		"ways in":   {chart.policy.Spec.Ingress, plain.policy.Spec.Ingress},
		"ways out":  {chart.policy.Spec.Egress, plain.policy.Spec.Egress},
		"endpoints": {chart.monitor.Spec.Endpoints, plain.monitor.Spec.Endpoints},
		"account":   {chart.account.AutomountServiceAccountToken, plain.account.AutomountServiceAccountToken},
		"settings":  {settings(t, chart), settings(t, plain)},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: the chart has\n%+v\nthe manifests\n%+v", what, pair[0], pair[1])
		}
	}
}

func settings(t *testing.T, c cluster) (all map[string]any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(c.config.Data["config.yaml"]), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// The chart renders the values that it is given.
func TestChartTakesItsValues(t *testing.T) {
	t.Parallel()
	c, ingress, err := charted(t, "team", `
image: {repository: registry.example.org/recurgentd, tag: v1}
imagePullSecrets: [{name: pull}]
tokensSecret: our-tokens
config: {model: qwen3-coder, openai-base-url: "http://models.tools:8000/v1"}
env: [{name: RECURGENT_LOG_LEVEL, value: debug}]
persistence: {size: 50Gi, storageClass: fast}
service: {port: 80}
ingress: {enabled: true, host: tools.example.org, tlsSecret: tools-tls, className: nginx, annotations: {a: b}}
networkPolicy: {from: [{namespaceSelector: {matchLabels: {name: ingress}}}], to: [{ports: [{port: 8000, protocol: TCP}]}]}
podAnnotations: {note: here}
nodeSelector: {disk: ssd}
tolerations: [{key: tools, operator: Exists}]
`)
	if err != nil {
		t.Fatal(err)
	}
	pod := c.set.Spec.Template.Spec
	b := theBinary(t)
	config := b.wantConfig(t, c.config.Data["config.yaml"])
	switch {
	case c.set.Name != "team-recurgentd" || c.set.Spec.ServiceName != c.service.Name ||
		pod.ServiceAccountName != c.account.Name:
		t.Errorf("names: %s, %s, %s", c.set.Name, c.set.Spec.ServiceName, pod.ServiceAccountName)
	case pod.Containers[0].Image != "registry.example.org/recurgentd:v1" || pod.ImagePullSecrets[0].Name != "pull":
		t.Errorf("image %s, %v", pod.Containers[0].Image, pod.ImagePullSecrets)
	case pod.Volumes[1].Secret.SecretName != "our-tokens" || pod.Volumes[0].ConfigMap.Name != c.config.Name:
		t.Errorf("volumes %+v", pod.Volumes)
	case config["model"] != "qwen3-coder" || config["openai-base-url"] != "http://models.tools:8000/v1" ||
		config["data-dir"] != "/data" || config["sandbox-require"] != "reduced" ||
		config["public-url"] != "https://tools.example.org":
		t.Errorf("settings %v", config)
	case pod.Containers[0].Env[2].Name != "RECURGENT_LOG_LEVEL" || pod.NodeSelector["disk"] != "ssd" ||
		pod.Tolerations[0].Key != "tools" || c.set.Spec.Template.Annotations["note"] != "here":
		t.Errorf("pod %+v", pod)
	case *c.set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName != "fast" || c.service.Spec.Ports[0].Port != 80:
		t.Errorf("claim or service: %+v, %+v", c.set.Spec.VolumeClaimTemplates, c.service.Spec)
	case ingress.Spec.Rules[0].Host != "tools.example.org" || ingress.Spec.TLS[0].SecretName != "tools-tls" ||
		ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name != c.service.Name ||
		*ingress.Spec.IngressClassName != "nginx":
		t.Errorf("ingress %+v", ingress)
	case len(c.policy.Spec.Ingress[0].From) != 2 || len(c.policy.Spec.Egress) != 3:
		t.Errorf("policy %+v", c.policy.Spec)
	}
	// what ends TLS there nobody knows
	for values, want := range map[string]any{"ingress: {enabled: true, host: tools.example.org}": nil,
		`{config: {public-url: "https://a.example/base"}, ingress: {enabled: true, host: tools.example.org, tlsSecret: x}}`: "https://a.example/base"} {
		if c, _, err := charted(t, "recurgentd", values); err != nil || settings(t, c)["public-url"] != want {
			t.Errorf("%s: %v, %v, want %v", values, settings(t, c)["public-url"], err, want)
		}
	}
	if none, _, err := charted(t, "recurgentd",
		"networkPolicy: {enabled: false}"); err != nil || none.policy.Kind != "" {
		t.Errorf("a policy where none is wanted: %+v, %v", none.policy, err)
	}
}

// Values that mean nothing, or that the chart decides itself, are refused by name.
func TestChartRefusesOtherValues(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"replicaCount: 3": "replicaCount", "image: {pullPolicy: Sometimes}": "pullPolicy", "service: {port: 0}": "port",
		"persistence: {sise: 1Gi}":       "sise",
		"config: {data-dir: /elsewhere}": "config.data-dir is the chart's own",
	} {
		if _, _, err := charted(t, "recurgentd", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}
