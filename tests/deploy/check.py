#!/usr/bin/env python3
"""Holds the files of deploy/ against the schemas of those who read them, and against one another. Prints what is wrong.

Run from the project's folder, with the packages of tests/requirements.txt.
"""
import glob
import json
import os
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


# Kubernetes: every manifest by its schema, unknown keys refused; the two kinds of the Prometheus operator, which have none here,
# by the keys that they are used with.
OPERATOR = {
    "PrometheusRule": {"groups"},
    "ServiceMonitor": {"jobLabel", "selector", "endpoints"},
}
kinds = {}
for path in sorted(glob.glob("deploy/kubernetes/**/*.yaml", recursive=True)):
    for document in documents(path):
        name = f"{path}: {document['kind']} {document['metadata']['name']}"
        kinds.setdefault(document["kind"], []).append((path, document))
        if document["apiVersion"] == "monitoring.coreos.com/v1":
            need(set(document) == {"apiVersion", "kind", "metadata", "spec"}, f"{name}: keys")
            need(set(document["spec"]) == OPERATOR[document["kind"]], f"{name}: keys of spec")
            continue
        try:
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        except kubernetes_validate.ValidationError as error:
            wrong.append(f"{name}: {error.message}")


def only(kind, name="switchback"):
    found = [(path, one) for path, one in kinds[kind] if one["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind} {name}: {len(found)}"
    return found[0]


# What is applied again holds no secret: `kubectl apply -f` of a folder does not look into folders within.
for path, _ in kinds["Secret"]:
    need(os.path.dirname(path) == "deploy/kubernetes/secret", f"{path}: a Secret beside what is applied again")
pod = only("Deployment")[1]["spec"]["template"]
container = pod["spec"]["containers"][0]
ports = {port["name"]: port["containerPort"] for port in container["ports"]}
labels = pod["metadata"]["labels"]
need("preStop" in container["lifecycle"], "no preStop")
for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
    need(container[probe]["httpGet"]["port"] in ports, f"{probe}: port")
started = container["startupProbe"]
need(started["periodSeconds"] * started["failureThreshold"] > 60, "startupProbe: shorter than limits.store_wait")
secret = only("Secret")[1]["stringData"]
used = {item["key"] for volume in pod["spec"]["volumes"] for item in volume.get("secret", {}).get("items", [])}
used |= {env["valueFrom"]["secretKeyRef"]["key"] for env in container["env"]}
need(used == set(secret), f"the Secret has {set(secret)}, used is {used}")
services = {one["metadata"]["name"]: one for _, one in kinds["Service"]}
for name, service in services.items():
    need(service["spec"]["selector"].items() <= labels.items(), f"Service {name}: selects nothing")
    for port in service["spec"]["ports"]:
        need(port["targetPort"] in ports, f"Service {name}: port {port['targetPort']}")
budget = only("PodDisruptionBudget")[1]["spec"]
need(budget["selector"]["matchLabels"].items() <= labels.items(), "PodDisruptionBudget: selects nothing")
need(budget["minAvailable"] < only("Deployment")[1]["spec"]["replicas"], "PodDisruptionBudget: nothing may go")
policy = only("NetworkPolicy")[1]["spec"]
need(policy["podSelector"]["matchLabels"].items() <= labels.items(), "NetworkPolicy: selects nothing")
need(policy["policyTypes"] == ["Ingress", "Egress"], "NetworkPolicy: policyTypes")
for rule in policy["ingress"]:
    for port in rule["ports"]:
        need(port["port"] in ports, f"NetworkPolicy: port {port['port']}")
        need(port["port"] == "health" or rule.get("from"), f"NetworkPolicy: {port['port']} is open to everybody")
# Browsers outside reach the callback, and nothing else.
ingresses = kinds["Ingress"]
need(len(ingresses) == 1, "more than one Ingress")
for rule in ingresses[0][1]["spec"]["rules"]:
    for path in rule["http"]["paths"]:
        need((path["path"], path["pathType"]) == ("/oauth/callback", "Exact"), f"Ingress: {path['path']}")
        behind = services[path["backend"]["service"]["name"]]["spec"]["ports"]
        need([port["targetPort"] for port in behind] == ["callback"], "Ingress: not the port of the callback")
monitor = only("ServiceMonitor")[1]["spec"]
watched = [one for one in services.values() if monitor["selector"]["matchLabels"].items() <= one["metadata"].get("labels", {}).items()]
need([one["metadata"]["name"] for one in watched] == ["switchback-admin"], "ServiceMonitor: selects something else")
for endpoint in monitor["endpoints"]:
    need(endpoint["port"] in {port["name"] for one in watched for port in one["spec"]["ports"]}, "ServiceMonitor: port")
    need(endpoint["authorization"]["credentials"]["key"] in secret, "ServiceMonitor: the Secret has no such key")
# The job that rules and dashboard name.
need(watched[0]["metadata"]["labels"][monitor["jobLabel"]] == "switchback", "ServiceMonitor: another job")
rules = documents("deploy/alerts.yaml")[0]
need(only("PrometheusRule")[1]["spec"] == rules, "PrometheusRule: not deploy/alerts.yaml")

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
