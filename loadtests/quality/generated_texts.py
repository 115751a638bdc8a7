"""Texts of the generated collections: what agents store beside conversations, with the questions asked for it."""

TASKS = """
roll back the last release|undo a bad deployment|stop the traffic;select the previous image;start it
restore the nightly backup|bring lost data back|list the snapshots;copy the newest one;check its sum
rotate the signing keys|replace old credentials|make a new pair;publish the public half;wait a day;revoke the old pair
add a new customer|set up an account for somebody|create the tenant;choose a plan;send the welcome mail
renew the certificate|what to do when TLS runs out|request it from the authority;install the chain;reload the proxy
migrate the schema|change tables without downtime|write the migration;run it on a copy;apply it in two steps
drain a worker node|take a machine out of service|mark it unschedulable;wait for its jobs;power it off
answer an alert at night|who does what when the pager rings|acknowledge it;open the dashboard;follow the runbook
publish the monthly report|send out the numbers|freeze the ledger;run the query;render the slides;mail the board
onboard an engineer|first day of a new colleague|order the laptop;grant the groups;pair for a day;assign a first ticket
"""
SERVICES = "billing search gateway ledger mailer catalog auth metrics uploads scheduler".split()
PLACES = ("in Frankfurt", "in Ohio", "on the staging cluster")

# What somebody said once, and a request that it bears on.
PREFERENCES = """
I am vegetarian and do not eat fish either|suggest a dinner recipe for tonight
Loud restaurants give me a headache|where could we eat out on Friday
I get seasick on small boats|plan an outing for our island holiday
My apartment is on the fifth floor without a lift|help me choose a new washing machine
I never drink coffee after noon|what should I order at the cafe this afternoon
Please write code with type hints everywhere|write me a python function that parses dates
I prefer tabs over spaces in source code|format this file for me
I like my summaries as three bullet points|summarise this article
We keep a cat that knocks over vases|which flowers should I put on the table
I am learning Portuguese and want to practise|recommend a film for the weekend
Horror films keep me awake at night|what should we watch tonight
My daughter is allergic to nuts|bake a cake for the birthday party
I train for a marathon in October|make a plan for my mornings
I work from home on Tuesdays|when could the plumber come
I am afraid of flying|how do I get to Rome in spring
My budget for gifts is thirty euros|find a present for my brother
Jazz is the only music I can work to|make a playlist for the office
I use a standing desk because of my back|which chair should I buy
Public transport is how I get around, I have no car|plan the trip to the lake
I do not want emojis in mails to customers|draft a reply to this customer
The metric system is what I think in|how large is this flat
I read on an e-reader, no paper books|which novel do you recommend
Spicy food upsets my stomach|pick something from the Thai menu
I wake up at five every day|schedule my workout
My phone is an old Android|which app should I install for notes
I only wear black and grey|help me pick a shirt for the wedding
Direct sunlight falls on my balcony all day|which plants should I grow outside
I hate phone calls and prefer mail|how should I contact the bank
Our team uses Postgres and nothing else for data|which database should this service have
I want tests written before the code|implement the discount rule
I sunburn within minutes|pack a bag for the beach
Gluten makes me ill|what bread can I make
I practise the piano in the evening|when can the neighbours visit
Small talk tires me quickly|how should I spend the networking evening
I do all my banking at a credit union|where should I open a savings account
My eyes get tired from bright screens|choose a theme for my editor
I share a kitchen with four people|how do I store the groceries
I broke my wrist last month|recommend an exercise
Answers in German please when I ask about law|explain tenancy rights to me
I collect stamps from Scandinavia|what can I do in Stockholm
"""

TOPICS = """
garden|tomatoes|soil;water;sun;roots;leaves;seeds;compost;pests;frost;pruning;harvest;mulch
running|marathon|pace;shoes;breathing;stretching;hydration;rest;intervals;hills;sleep;injuries;plans;races
savings|mortgage|interest;budget;rent;taxes;funds;risk;insurance;inflation;debts;pension;fees;brokers
cooking|risotto|rice;broth;onions;butter;wine;cheese;heat;stirring;salt;herbs;pans;timing
travel|Lisbon|trams;hotels;museums;flights;luggage;beaches;viewpoints;food;tickets;weather;safety;walks
music|cello|bow;strings;scales;posture;teachers;practice;rhythm;tuning;pieces;concerts;hearing;rosin
computers|laptop|memory;battery;screen;keyboard;storage;drivers;updates;backups;noise;ports;price;weight
pets|parrot|cages;seeds;toys;noise;vets;mirrors;training;sleep;feathers;company;perches;fruit
"""
TEMPLATES = (
    "As for {a}, it helps to look at {b} first, since one depends on the other.",
    "Many people underestimate {a}; a little attention every week goes a long way.",
    "With {topic}, {a} and {b} are what beginners ask about most often.",
    "You may want to write down how {a} changes over a month before you decide anything.",
    "There are several schools of thought on {a}, and none of them ignores {b}.",
    "If {a} is a problem, start small, change one thing at a time, and keep what works.",
)
# A remark in passing, and what is asked about it later.
REMARKS = """
By the way, I bought the {topic} things at {name}'s shop on {day}|where did I buy the {topic} things
My neighbour {name} said on {day} that {topic} is easy|who told me that {topic} is easy
I spent {number} euros on {topic} last {day}|how much did I spend on {topic}
I have been at it with {topic} for {number} weeks now, since that {day}|how many weeks have I been at it with {topic}
"""
NAMES = "Ines Marek Oyelaran Priya Tomas Wen Yusuf Zofia Birgit Caio".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday".split()

LANGUAGES = """
de|Der Schlüssel zum Keller hängt hinter der Küchentür|wo hängt der Schlüssel zum Keller
de|Die Rechnung der Druckerei wurde im März bezahlt|wann wurde die Rechnung der Druckerei bezahlt
de|Unser Tierarzt heißt Frau Lindner|wie heißt unser Tierarzt
de|Der Zug nach Wien fährt um sechs Uhr ab|wann fährt der Zug nach Wien
fr|La clé de la cave est derrière la porte de la cuisine|où est la clé de la cave
fr|La facture de l'imprimeur a été payée en mars|quand la facture de l'imprimeur a-t-elle été payée
fr|Notre vétérinaire s'appelle madame Moreau|comment s'appelle notre vétérinaire
fr|Le train pour Lyon part à six heures|à quelle heure part le train pour Lyon
es|La llave del sótano está detrás de la puerta|dónde está la llave del sótano
es|La factura de la imprenta se pagó en marzo|cuándo se pagó la factura de la imprenta
es|Nuestra veterinaria se llama Carmen|cómo se llama nuestra veterinaria
es|El tren a Sevilla sale a las seis|a qué hora sale el tren a Sevilla
pl|Klucz do piwnicy wisi za drzwiami kuchni|gdzie wisi klucz do piwnicy
pl|Faktura drukarni została zapłacona w marcu|kiedy została zapłacona faktura drukarni
pl|Nasz weterynarz nazywa się Nowak|jak nazywa się nasz weterynarz
pl|Pociąg do Krakowa odjeżdża o szóstej|o której odjeżdża pociąg do Krakowa
ru|Ключ от подвала висит за кухонной дверью|где висит ключ от подвала
ru|Счёт типографии был оплачен в марте|когда был оплачен счёт типографии
ru|Нашего ветеринара зовут Ольга|как зовут нашего ветеринара
ru|Поезд в Казань уходит в шесть часов|когда уходит поезд в Казань
zh|地下室的钥匙挂在厨房门后面|地下室的钥匙在哪里
zh|印刷厂的账单三月份已经付了|印刷厂的账单什么时候付的
zh|我们的兽医姓王|我们的兽医姓什么
zh|去北京的火车六点出发|去北京的火车几点出发
"""
NONSENSE = (
    "xyzzy plugh",
    "quantum chromodynamics lattice gauge",
    "florble the wug",
    "zxqv brnt kkpl",
    "paleozoic trilobite taxonomy",
    "lorem ipsum dolor",
    "ok",
    "go on",
)
