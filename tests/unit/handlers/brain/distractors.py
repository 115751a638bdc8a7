"""2,000 competing memories: forty projects with fifty facts each, and a paraphrased query for every fact.

A fact has 39 distractors with the same fact about another project and 49 other facts about its project. The test that
saves them chooses importance and age.
"""

from typing import NamedTuple

PROJECTS = """Albatross Basilisk Caravan Dandelion Eclipse Falcon Glacier Harvest Iguana Juniper Kestrel Lantern Meadow
Nautilus Obsidian Pelican Quartz Raven Saffron Tundra Umbra Violet Walrus Xenon Yonder Zephyr Anvil Beacon Cobalt Drift
Ember Fjord Granite Hollow Indigo Jasper Krill Lotus Mosaic Nimbus""".split()

FACTS = """
The database behind {p} is {v}|what database is behind {p}|PostgreSQL MySQL SQLite MongoDB Cassandra
{p} is deployed to the {v} region|which region is {p} deployed in|Frankfurt Dublin Oregon Singapore Mumbai
The product owner of {p} is {v}|who owns {p} as a product|Alice Bruno Chen Dalia Emeka
{p} was written in {v}|which language was {p} written in|Rust Go Kotlin Elixir Python
The frontend of {p} uses {v}|which frontend framework did we pick for {p}|React Svelte Vue Angular Solid
CI for {p} runs on {v}|where does CI for {p} run|Jenkins CircleCI Drone Woodpecker Travis
{p} listens on port {v}|what port is {p} reachable on|8081 9090 7070 6060 5050
Backups of {p} are taken every {v} hours|how often are there backups of {p}|two four six eight twelve
The on-call rota of {p} changes on {v}|when does on-call of {p} change|Monday Tuesday Wednesday Thursday Friday
Logs of {p} are kept for {v} days|how many days do we keep the logs of {p}|seven ten fourteen thirty ninety
Feature flags in {p} come from {v}|what feature flag service does {p} use|Unleash Flagsmith Split Flipt Eppo
The message queue of {p} is {v}|which message queue is behind {p}|Kafka RabbitMQ NATS Pulsar SQS
Caching in {p} is done with {v}|what cache does {p} have|Redis Memcached Varnish Hazelcast Ehcache
The license of {p} is {v}|under which license is {p} published|MIT Apache GPL BSD MPL
{p} bills its customers in {v}|in what currency does {p} bill customers|euros dollars pounds yen francs
Authentication for {p} goes through {v}|how do users authenticate to {p}|Keycloak Okta Auth0 Cognito Dex
The mascot of {p} is a {v}|what animal is the mascot of {p}|otter badger heron lynx gecko
Design files for {p} live in {v}|where do the {p} design files live|Figma Sketch Penpot Miro Zeplin
The sprint length of {p} is {v} weeks|how long are sprints in {p}|one two three four six
{p} is tested with {v}|what test runner is used by {p}|pytest Jest JUnit RSpec Catch2
Secrets of {p} are kept in {v}|where do we keep the secrets of {p}|Vault Doppler Infisical SOPS Bitwarden
The budget of {p} is {v} thousand a month|what is the monthly budget for {p}|ten twenty thirty forty fifty
{p} sends email through {v}|which email provider does {p} use|Mailgun Postmark SendGrid Sparkpost Resend
The API of {p} speaks {v}|what does the {p} API speak|GraphQL REST gRPC SOAP Thrift
Search in {p} is powered by {v}|what is search in {p} powered by|Elasticsearch Typesense Meilisearch Solr Vespa
{v} describes the infrastructure of {p}|what describes {p} infrastructure|Terraform Pulumi Ansible Chef Crossplane
Errors of {p} are reported to {v}|where can I see the errors of {p}|Sentry Rollbar Bugsnag Honeybadger Airbrake
The {p} team has standup at {v} in the morning|what time is the {p} standup|eight nine ten eleven seven
{p} stores uploaded files in {v}|where do files uploaded to {p} go|S3 MinIO Azure Dropbox Backblaze
The largest customer of {p} is {v}|who is the biggest customer of {p}|Acme Globex Initech Hooli Umbrella
The code style of {p} demands {v}|what does the code style of {p} demand|tabs spaces semicolons braces underscores
Releases of {p} happen on {v}|on what day are {p} releases|Mondays Tuesdays Wednesdays Thursdays Sundays
{p} was started in {v}|what year was {p} started|2015 2017 2019 2020 2021
Monitoring of {p} is in {v}|where is the monitoring for {p}|Grafana Datadog Kibana Zabbix NewRelic
{p} must stay below {v} milliseconds of latency|what latency may {p} have|50 80 100 90 40
Translations of {p} are managed with {v}|how are {p} translations managed|Crowdin Lokalise Weblate Phrase Transifex
The security audit of {p} is done by {v}|who does the security audit for {p}|Cure53 Trail NCC Mandiant Bishop
Payments in {p} run over {v}|what payment provider does {p} have|Stripe Adyen Braintree Mollie Square
{p} supports the {v} browser only|which browser is supported by {p}|Chrome Firefox Safari Edge Opera
The documentation of {p} is built with {v}|what are the {p} docs built with|Sphinx MkDocs Docusaurus Hugo Antora
Migrations in {p} are run by {v}|how are schema migrations of {p} run|Flyway Liquibase Alembic Knex Prisma
{p} is hosted on {v}|where is {p} hosted|Hetzner Azure Linode Vultr Scaleway
The branch that {p} ships from is {v}|from which branch is {p} shipped|main trunk stable release production
Support tickets for {p} arrive in {v}|where do support tickets about {p} arrive|Zendesk Freshdesk Intercom Jira Linear
The {p} retrospective is led by {v}|who leads the retrospective of {p}|Farah Goran Hilda Ivan Joanna
{p} encrypts its disks with {v}|how are the disks of {p} encrypted|LUKS BitLocker FileVault VeraCrypt Geli
Video calls of the {p} team are on {v}|what does the {p} team use for video calls|Zoom Jitsi Meet Teams Whereby
The analytics of {p} come from {v}|what analytics tool does {p} have|Matomo Plausible Mixpanel Amplitude Umami
{p} is packaged as a {v} image|what kind of image is {p} packaged as|Docker Podman Snap Flatpak AppImage
The rate limit of {p} is {v} requests a second|what is the rate limit of {p}|twenty forty sixty hundred thousand
"""


class Rival(NamedTuple):
    """One memory, and the question it answers."""

    content: str
    question: str


def rivals() -> list[Rival]:
    """All 2,000, each with its own project and fact; values repeat."""
    found: list[Rival] = []
    for number, line in enumerate(FACTS.strip().splitlines()):
        statement, question, values = line.split("|")
        for at, project in enumerate(PROJECTS):
            value = values.split()[(at + number) % 5]
            found.append(Rival(statement.format(p=project, v=value), question.format(p=project)))
    return found
