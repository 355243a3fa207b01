#!/usr/bin/env python3
"""Holds the files of deploy/ against the schemas of those who read them, and against one another. Prints what is wrong.

Run from the project's folder, with the packages of tests/requirements.txt.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

import kubernetes_validate
import yaml

wrong = []


def need(condition, what):
    if not condition:
        wrong.append(what)


def documents(path):
    with open(path) as file:
        return [document for document in yaml.safe_load_all(file) if document]


# The chart: rendered by Helm with its defaults and with everything on, every manifest by its schema, unknown keys refused; the two
# kinds of the Prometheus operator, which have none here, by the keys that they are used with.
OPERATOR = {
    "PrometheusRule": {"groups"},
    "ServiceMonitor": {"jobLabel", "selector", "endpoints"},
}
# `.ci/run` puts Helm beside the interpreter where the system has none.
HELM = shutil.which("helm") or shutil.which("helm", path=os.path.dirname(sys.executable))
EVERYTHING = ["ingress.enabled=true", "autoscaling.enabled=true", "monitoring.serviceMonitor.enabled=true", "monitoring.rules.enabled=true"]


def helm(*words):
    return subprocess.run([HELM, *words], capture_output=True, text=True)


def rendered(*values):
    """The manifests of the chart by kind and name."""
    words = [word for value in values for word in ("--set", value)]
    done = helm("template", "switchback", "deploy/chart", *words)
    need(done.returncode == 0, f"helm template {values}: {done.stderr}")
    found = {}
    for document in filter(None, yaml.safe_load_all(done.stdout)):
        key = document["kind"], document["metadata"]["name"]
        need(key not in found, f"{key} is rendered twice")
        found[key] = document
        if document["apiVersion"] == "monitoring.coreos.com/v1":
            need(set(document) == {"apiVersion", "kind", "metadata", "spec"}, f"{key}: keys")
            need(set(document["spec"]) == OPERATOR[document["kind"]], f"{key}: keys of spec")
            continue
        try:
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        except kubernetes_validate.ValidationError as error:
            wrong.append(f"{key}: {error.message}")
    return found


def check_chart(values):
    chart = rendered(*values)
    def only(kind, name="switchback"):
        return chart.get((kind, name)) or sys.exit(f"{values}: no {kind} {name}")

    everything = values == EVERYTHING
    need(("Ingress" in {kind for kind, _ in chart}) == everything, f"{values}: Ingress")
    # A Secret that is rendered would be overwritten by each upgrade.
    need("Secret" not in {kind for kind, _ in chart}, f"{values}: a Secret")
    with open("deploy/chart/values.yaml") as file:
        secret = set(re.findall(r"--from-literal=([a-z-]+)=", file.read()))
    deployment = only("Deployment")["spec"]
    pod = deployment["template"]
    container = pod["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    config = yaml.safe_load(only("ConfigMap")["data"]["switchback.yaml"])
    addresses = {"http": config["listen"], "admin": config["admin"]["listen"], "health": config["health"]["listen"]}
    if config.get("oauth"):
        addresses["callback"] = config["oauth"]["listen"]
    need(ports == {name: int(address.split(":")[1]) for name, address in addresses.items()}, f"ports {ports}, not {addresses}")
    labels = pod["metadata"]["labels"]
    need(deployment["selector"]["matchLabels"].items() <= labels.items(), "Deployment: selects nothing")
    need(("replicas" in deployment) != everything, "Deployment: replicas, and an autoscaler")
    need("preStop" in container["lifecycle"], "no preStop")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        need(container[probe]["httpGet"]["port"] in ports, f"{probe}: port")
    started = container["startupProbe"]
    need(started["periodSeconds"] * started["failureThreshold"] > 60, "startupProbe: shorter than limits.store_wait")
    used = {item["key"] for volume in pod["spec"]["volumes"] for item in volume.get("secret", {}).get("items", [])}
    used |= {env["valueFrom"]["secretKeyRef"]["key"] for env in container["env"]}
    need(used == secret, f"values.yaml creates a Secret with {secret}, used is {used}")
    services = {name: one for (kind, name), one in chart.items() if kind == "Service"}
    need(("switchback-callback" in services) == ("callback" in ports), "Service of the callback")
    for name, service in services.items():
        need(service["spec"]["selector"].items() <= labels.items(), f"Service {name}: selects nothing")
        for port in service["spec"]["ports"]:
            need(port["targetPort"] in ports, f"Service {name}: port {port['targetPort']}")
    budget = only("PodDisruptionBudget")["spec"]
    need(budget["selector"]["matchLabels"].items() <= labels.items(), "PodDisruptionBudget: selects nothing")
    need(budget["minAvailable"] < deployment.get("replicas", 2), "PodDisruptionBudget: nothing may go")
    policy = only("NetworkPolicy")["spec"]
    need(policy["podSelector"]["matchLabels"].items() <= labels.items(), "NetworkPolicy: selects nothing")
    need(policy["policyTypes"] == ["Ingress", "Egress"], "NetworkPolicy: policyTypes")
    for rule in policy["ingress"]:
        for port in rule["ports"]:
            need(port["port"] in ports, f"NetworkPolicy: port {port['port']}")
            need(port["port"] == "health" or rule.get("from"), f"NetworkPolicy: {port['port']} is open to everybody")
    if not everything:
        return
    scaler = only("HorizontalPodAutoscaler")["spec"]
    need(scaler["scaleTargetRef"]["name"] == "switchback", "HorizontalPodAutoscaler: scales something else")
    need(scaler["minReplicas"] > budget["minAvailable"], "HorizontalPodAutoscaler: nothing may go")
    # Browsers outside reach the callback, and nothing else.
    for rule in only("Ingress", "switchback-callback")["spec"]["rules"]:
        for path in rule["http"]["paths"]:
            need(config["oauth"]["redirect_url"] == f"https://{rule['host']}{path['path']}", f"Ingress: {path['path']}")
            need(path["pathType"] == "Exact", f"Ingress: {path['pathType']}")
            behind = services[path["backend"]["service"]["name"]]["spec"]["ports"]
            need([port["targetPort"] for port in behind] == ["callback"], "Ingress: not the port of the callback")
    monitor = only("ServiceMonitor")["spec"]
    watched = [one for one in services.values() if monitor["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()]
    need([one["metadata"]["name"] for one in watched] == ["switchback-admin"], "ServiceMonitor: selects something else")
    for endpoint in monitor["endpoints"]:
        need(endpoint["port"] in {port["name"] for one in watched for port in one["spec"]["ports"]}, "ServiceMonitor: port")
        need(endpoint["authorization"]["credentials"]["key"] in secret, "ServiceMonitor: the Secret has no such key")
    # The job that rules and dashboard name.
    need(watched[0]["metadata"]["labels"][monitor["jobLabel"]] == "switchback", "ServiceMonitor: another job")
    need(only("PrometheusRule")["spec"] == documents("deploy/alerts.yaml")[0], "PrometheusRule: not deploy/alerts.yaml")


if HELM:
    linted = helm("lint", "--strict", "deploy/chart")
    need(linted.returncode == 0, linted.stdout + linted.stderr)
    for values in ([], EVERYTHING, ["config.oauth=null"]):
        check_chart(values)
    need(helm("template", "switchback", "deploy/chart", "--set", "replica=3").returncode != 0, "a misspelt value is accepted")
else:
    print("SKIPPED: helm is not installed; the chart is not rendered", file=sys.stderr)

# Workflows by the schema of GitHub.
workflows = sorted(glob.glob(".github/workflows/*.yml"))
judged = subprocess.run(
    [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows],
    capture_output=True, text=True)
need(judged.returncode == 0, judged.stdout + judged.stderr)

# Compose files by their schema, as its keepers publish it; what they mount is there.
for path in ("deploy/compose.yaml", "deploy/cluster/compose.yaml"):
    judged = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", path],
        capture_output=True, text=True)
    need(judged.returncode == 0, judged.stdout + judged.stderr)
    compose = documents(path)[0]
    for name, service in compose["services"].items():
        folder = os.path.dirname(path)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                need(os.path.exists(os.path.join(folder, source)), f"{path}: {name} mounts {source}, which is not there")
            else:
                need(source in compose["volumes"], f"{path}: {name}: no volume {source}")
        for file in service.get("env_file", []):
            need(os.path.exists(os.path.join(folder, file)), f"{path}: {name}: no {file}")
        for other in service.get("depends_on", []):
            need(other in compose["services"], f"{path}: {name}: no service {other}")
        shared = service.get("network_mode", "service:sandbox").removeprefix("service:")
        need(shared in compose["services"], f"{path}: {name}: no service {shared}")
        # The folder of the archives is made by `deploy/release`; the Dockerfile is there.
        if "build" in service:
            need(os.path.normpath(os.path.join(folder, service["build"]["context"])) == "target/release-files", f"{path}: {name}: context")
            dockerfile = os.path.normpath(os.path.join(folder, service["build"]["context"], service["build"]["dockerfile"]))
            need(os.path.exists(dockerfile), f"{path}: {name}: no {dockerfile}")
cluster = documents("deploy/cluster/compose.yaml")[0]["services"]
need(set(cluster) == {"gateway-a", "gateway-b", "haproxy", "postgres", "sandbox", "prometheus", "grafana"}, "cluster: services")
scraped = {target for group in json.load(open("deploy/cluster/targets.json")) for target in group["targets"]}
admin = {"sandbox:" + cluster[name]["environment"]["CLUSTER_ADMIN"].split(":")[1] for name in ("gateway-a", "gateway-b")}
need(scraped == admin, f"targets.json: {scraped} is not {admin}")

# Configurations of the gateway are YAML for other tools, too.
for path in ("deploy/compose.switchback.yaml", "deploy/switchback.sample.yaml", "deploy/cluster/switchback.yaml"):
    try:
        read = documents(path)
    except yaml.YAMLError as error:
        wrong.append(f"{path}: no YAML: {error}")
        continue
    need(len(read) == 1 and isinstance(read[0], dict) and "upstreams" in read[0], f"{path}: no configuration")

print("\n".join(wrong), end="")
sys.exit(1 if wrong else 0)
