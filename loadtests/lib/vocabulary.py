"""The words of the corpus: twelve fields of life by hand, and the syllables of the long tail."""

FIELDS: dict[str, tuple[str, ...]] = {
    "backend": tuple(
        """service config request token session retry timeout queue worker thread gateway proxy cluster region replica
        cache throttle payload webhook scheduler daemon socket handshake broker partition offset consumer producer
        leader quorum heartbeat failover rollout canary container pod ingress sidecar manifest namespace""".split()
    ),
    "data": tuple(
        """table column schema index query migration rollback transaction snapshot constraint trigger cursor vacuum
        replica foreign join aggregate partition warehouse pipeline parquet backfill lineage dashboard metric cohort
        funnel retention histogram percentile outlier sampling notebook dataset label vector embedding""".split()
    ),
    "frontend": tuple(
        """button form field dialog tooltip theme palette font layout grid sidebar toolbar checkbox dropdown spinner
        animation viewport breakpoint stylesheet component hook props router accessibility contrast keyboard focus
        scroll carousel thumbnail avatar icon banner onboarding translation locale""".split()
    ),
    "office": tuple(
        """meeting agenda minutes deadline milestone roadmap sprint ticket estimate budget invoice contract supplier
        customer renewal discount refund quarter forecast headcount interview candidate salary payroll vacation
        approval signature stakeholder workshop slides deck handover escalation audit compliance""".split()
    ),
    "kitchen": tuple(
        """recipe oven skillet butter flour yeast dough garlic onion pepper basil lemon salmon chicken lentils rice
        noodles soup stew salad dressing vinegar mustard cinnamon vanilla chocolate pancake breakfast leftovers freezer
        simmer roast knead marinade spatula apron""".split()
    ),
    "travel": tuple(
        """flight hotel train passport visa luggage boarding layover airport terminal itinerary hostel museum cathedral
        harbour ferry island beach volcano glacier hiking trail tent backpack compass currency embassy souvenir
        festival market taxi bicycle motorway bridge tunnel border""".split()
    ),
    "health": tuple(
        """doctor appointment allergy penicillin asthma inhaler dosage prescription pharmacy dentist vaccine migraine
        cholesterol insulin vitamin physiotherapy knee shoulder posture stretching marathon sprinting heartrate sleep
        insomnia therapist anxiety meditation glasses hearing pregnancy toddler fever""".split()
    ),
    "home": tuple(
        """landlord mortgage boiler radiator thermostat plumber leak gutter roof attic basement carpet curtain wallpaper
        drill screwdriver ladder lawn hedge tomato compost greenhouse puppy kitten aquarium neighbour doorbell parcel
        recycling dishwasher laundry sofa bookshelf lamp candle""".split()
    ),
    "culture": tuple(
        """novel chapter narrator poem sonnet theatre rehearsal orchestra violin cello guitar chord melody album vinyl
        concert gallery sculpture painting canvas brush camera lens tripod documentary director screenplay comedy
        tragedy puzzle chess opening endgame crossword podcast episode""".split()
    ),
    "science": tuple(
        """telescope planet orbit comet neutron electron photon laser crystal enzyme protein genome bacteria virus
        microscope sediment fossil earthquake climate monsoon drought glacier wetland pollinator orchard theorem lemma
        proof integral matrix eigenvalue polynomial probability regression entropy algorithm""".split()
    ),
    "study": tuple(
        """teacher student lesson exam grade essay thesis citation library seminar lecture homework scholarship tuition
        grammar vocabulary verb adjective pronunciation dictionary flashcard kanji alphabet spelling geometry algebra
        history geography biology chemistry physics philosophy debate kindergarten""".split()
    ),
    "security": tuple(
        """password certificate secret keyring encryption cipher signature firewall intrusion malware phishing sandbox
        permission role policy tenant quota audit incident forensics disclosure exploit overflow injection fuzzing
        rotation revocation fingerprint biometrics attestation enclave hardening patch advisory""".split()
    ),
}
GENERAL = tuple(
    """team user test release error review version page report document file list number key value order group state
    level point change problem idea reason example note draft plan result limit price time week month year day name
    place part side case line step start end summary choice default rule habit question answer""".split()
)
PREFIXES = (
    "",
    *"""re pre un over under inter multi sub super trans micro macro auto co de dis en fore mis non out post semi
    tele""".split(),
)
ROOTS = tuple(
    """cache port form struct scribe spect duct ject tract mit cede vert pose fine sign serve press log graph meter
    scope phone therm chron dict vis aud loc nect pend rupt sect tain tend vene voke vol solve sist sume tribute claim
    clude cur fer flect fuse grad gress here lapse late lect lude merge mand nounce pel plete plore prove quire rect
    script sent spire stall strain strict sult tort turb vade var vend vince""".split()
)
SUFFIXES = (
    "",
    *"er or ing ed ion ment able ive al ance ence ity ist ism ful less ness ory age ure ly ize ary".split(),
)
PEOPLE = tuple(
    """Ana Ben Carla Dmitri Elena Farid Grace Hugo Ines Jonas Kenji Lucia Maya Nils Olga Pavel Quinn Rosa Samir Tessa
    Uma Viktor Wanda Ximena Yusuf Zoe Amara Bruno Chiara Dario Esra Felix Gita Henrik""".split()
)
LANGUAGES = ("Python", "Go", "Rust", "TypeScript", "Kotlin", "Swift", "Ruby", "Elixir", "Java", "Zig")

OPENINGS: dict[str, tuple[str, ...]] = {
    "preferences": (
        "{person} prefers the {a} over the {b}, keep {c} short.",
        "What {person} likes is {a} with {b}, never with {c}.",
        "{person} writes {language}; {a}, {b} and {c} first, {d} last.",
        "No {a} before the {b}, says {person}, but {c} is fine.",
    ),
    "decisions": (
        "Moved {a} into the {b}: {c} was too much for {d}.",
        "On {day} we decided that {a} stays, {b} goes, and the {c} waits for {d}.",
        "{person} chose {a} instead of {b}; it is the {c} that pays.",
        "No {a} any more. {b} covers {c} and the {d}.",
    ),
    "notes": (
        "The {a} depends on {b}; {person} has {c} and {d}.",
        "{a}: {b}, {c}, {d}.",
        "First {a}, then the {b}, finally {c}.",
        "{person} on {a}: without {b} there is no {c}.",
        "{a} needs {b} every {n} days, or {c} turns into {d}.",
    ),
    "incidents": (
        "{day}: {a} failed with {code} because the {b} had no {c}; {person} replaced {d}.",
        "{code} means {a} is not the same as {b}. Clear {c} before {d}.",
        "Lost the {a} after {b}; {c} was down for {n} minutes, {d} is not back yet.",
    ),
    "snippets": (
        "def {f}_{g}({a}, {b}):\n    rows = load('{c}', limit={n})\n    return [row.{d} for row in rows]",
        "{language}:\n{f} = {g}({a}, {b}={n})\nif not {f}:\n    raise ValueError('{c}')",
        "{f} --{a} {n} --{b} | {g} {c} > {d}.txt",
    ),
}
MORE = (
    "It is also in the {a} and {b}.",
    "Tell {person} before the {a} changes.",
    "Limit for {a}: {n}, as of {day}.",
    "This replaces the {a} that we had.",
    "See {a}, {b} and the {c}.",
    "The {a} breaks {b} when {c} is empty.",
    "{person} does not want {a} or {b} at all.",
    "Keep {a} apart from {b}, {c} and {d}.",
    "Half of the {a} came from {b}, the other half from {c}.",
    "{person} wants more {a}, less {b} and {d}.",
    "That is {n} a month for {a}, {b} and {c}.",
    "At {n} {a} it is time for a {b}.",
    "To every {a} a {b}, to some a {c}.",
    "{a} from zero, {b} from one, {c} never.",
    "You could begin with {a}, or with {b} and {c}.",
    "Two {a} at once, no {b} until {day}.",
    "Is it {a}, {b} or {c}? {person} does not know.",
    "Later perhaps {a}, {b}, {c}, or even {d}.",
)
QUESTIONS = (
    "what did we decide about the {0} and the {1}, was it because of the {2} or {3}",
    "how does the {0} work with the {1} when there is a {2}",
    "why did the {0} fail after the {1} and who knows about the {2}",
    "which {1} do I need for the {0}, the {3} and the {2}",
    "does anybody remember whether the {0} still depends on {1}, {2} or {3}",
    "{0} {1} {2} {3}",
)
