"""Stems of words beside a text, for languages with endings: a question seldom has the form that the memory has.

FTS5's porter tokenizer stems English. A script other than Latin tells the language, or a language whose stems are near
(Ukrainian is stemmed as Russian); the language of Latin letters is that of most of the function words.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import Stemmer  # at once: it cannot be mapped any more at the end of the memory

from kernel.core.lazy_regex import regex
from kernel.search.query import CJK_FUNCTION_WORDS, STOP_WORDS

_MARK = "\U000f0001"  # of private use, a letter for unicode61: no stem is taken for a word
_PRIVATE = 0xF0000  # plane 15: unicode61 takes its characters for letters
_LOW = 0xFFFF
_FIRST_OF_PLANE_1 = 0xF000  # of the lower 16 bits: emoji beyond have them, signs and letters of plane 0 less
_WITHOUT_ENDINGS = ("vietnamese",)
_WITH_VOWEL_SIGNS = ("hindi", "tamil")  # unicode61 cuts their words
_MIN_STEM = 2  # letters
_MAX_WORD = 40  # letters; longer words are no words
_WORD = regex(
    "(?P<latin>[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+)|(?P<russian>[\u0400-\u052f]+)"
    "|(?P<greek>[\u0370-\u03ff\u1f00-\u1fff]+)|(?P<arabic>[\u0620-\u064a\u066e-\u06d3]+)|(?P<hebrew>[\u05d0-\u05ea]+)"
    "|(?P<hindi>[\u0900-\u0963\u0971-\u097f]+)|(?P<tamil>[\u0b80-\u0bff]+)|(?P<armenian>[\u0531-\u0587]+)"
)
_AROUND_WORDS = "?!.,;:()\"'¿¡…«»“”„‚‘’؟،؛।？！。、，"
_PERSIAN_LETTERS = frozenset("پچژگکی")
# Function words tell the language of a text in Latin letters, and no question searches by them.
_LATIN_WORDS = {
    "german": """aber als am an auch auf aus bei bin bis da damit dann das dass dein deine dem den der des die dir doch
        du durch ein eine einem einen einer eines er es für gibt haben habe hat hatte ich ihr ihre im in ist ja kann
        kein keine man mein meine meiner mich mir mit muss nach nicht noch nur ob oder ohne schon sein seine sich sie
        sind so um und uns unser unsere unter vom von vor wann war waren warum was welche welcher welches welchem wem
        wen wenn wer werden wie wieder wir wird wo wofür woher wohin worüber wovon wurde wurden zu zum zur über""",
    "french": """a au aux avec c ce ces cet cette chez combien comme comment d dans de des depuis dois doit du elle
        elles en es est et eu été être fait il ils j je l la le les leur lequel laquelle lui m ma mais me mes moi mon n
        ne nos notre nous on ont ou où par pas pendant plus pour pourquoi qu quand que quel quelle quelles quels qui
        quoi s sa sans se ses son sont sous sur t ta te tes ton tu un une va vos votre vous y à""",
    "spanish": """a al algo como con cuando cuál cuáles cuándo cuánto cuánta cuántos cuántas cómo de del desde donde
        dónde durante e el ella ellos en entre era es ese esa esta este está están esto estos fue ha hace han hasta hay
        he la las le les lo los me mi mis muy más ni no nos nuestra nuestro o para pero por porque qué que quien quién
        quiénes se sin sobre son su sus también te tiene tu tus un una uno y ya yo él""",
    "portuguese": """a ao aos as até com como da das de depois do dos e ela elas ele eles em entre era essa esse esta
        este está estão eu foi foram há isso isto já lhe mais mas me meu meus minha muito na nas no nos nossa nosso não
        nós o onde os ou para pela pelas pelo pelos por porque porquê qual quais quando quanto quantos que quem se sem
        ser seu seus sua suas são só também te tem tinha tu um uma você à às é""",
    "italian": """a abbiamo ai al alla alle anche c che chi ci come con cosa così cui d da dal dalla dei del dell della
        delle di dove due e ed era essere fa fra gli ha hanno ho i il in io l la le lei li lo loro lui ma mi mia mio ne
        nei nel nell nella noi non nostra nostro o per perché più quale quali quando quanto quanti quella quello questa
        questo qui se si sia sono su sua sue sugli sul sulla suo suoi ti tra tu un una uno è""",
    "dutch": """aan al als bij dan dat de deze die dit door doen een en er ga gaat geen had hebben heeft het hij hoe
        hoeveel hun ik in is je jij kan maar mag me meer met mij mijn moet na naar niet nog nu of om omdat ons onze ook
        op over te tegen tot u uit van veel voor waar waarom waarop wanneer was wat we welk welke werd wie wij worden
        wordt ze zich zij zijn zo zonder""",
    "polish": """a aby ale bardzo bez był była było były być co czego czemu czy czym dla dlaczego do gdy gdzie go i ich
        ile im ja jak jaka jaki jakie jakiego jakiej jakim jako jego jej jest jeszcze już kiedy kim kogo komu kto która
        które którego której który którym mam mi mnie moja moje mój może można na nad nasz nasza nasze nie niż o od
        oraz po pod przed przez przy są się ta tak także tam te tego tej ten to tu tylko w we więc z za ze że""",
    "czech": """a aby ale až bez byl byla bylo byly být co čem čeho čím do ho i já jak jaká jaké jaký jakou je jeho
        její jejich jen ještě jsem jsme jsou již k kam kde kdo kdy když ke která které kterém který kterou má mají mi
        můj moje my na nad náš naše ne nebo než o od po pod pro proč před při s se si své svůj ta tak také tam tě ten
        to tu u už v ve z za ze že""",
    "turkish": """acaba ama ancak bana ben beni benim bir biri biz bizim bu bunu da daha de değil diye en gibi göre
        hangi hangisi her hiç için ile ise kaç kadar ki kim kime kimin mi mu mı mü nasıl ne neden nedir nerede nereden
        nereye niçin niye o olan olarak oldu olduğu onlar onu onun orada sen şey şu var ve veya ya yok zaman çok""",
    "swedish": """alla att av blev de dem den det denna detta din du där efter ej eller en er ett från för ha hade han
        hans har henne hennes hon hur hög i icke in inte jag kan man med men mellan min mitt mot mycket många måste ni
        nu när någon något och om oss på sedan sig sin sina ska som så till under upp ur ut utan vad var varför varje
        vem vi vid vilka vilken vilket vår vårt är åt över""",
    "danish": """af alle at blev bliver da de dem den denne der deres det dig du efter eller en er et for fra få går
        han hans har havde hende hendes her hun hvad hvem hver hvilken hvilket hvor hvordan hvorfor hvornår i ikke ind
        ja jeg kan kun man med meget men mig min mit mod når nogen og også om op os over på sig sin skal som til ud
        under var ved vi vil vores være""",
    "norwegian": """av alle at ble blir da de dem den denne der deres det deg du eller en er et etter for fra få går ha
        hadde han hans har henne hennes her hun hva hvem hver hvilken hvilket hvor hvordan hvorfor når i ikke inn ja
        jeg kan kun man med meg men mer min mitt mot noen nå og også om opp oss over på seg sin skal som så til under
        ut uten var ved vi vil vår være""",
    "finnish": """ei eivät että he heidän hän hänen ja jo joka joita jos jotka kanssa koska kuinka kuka kun kuin ketä
        kenen kenelle me meidän mihin mikä mille millä milloin minkä minä minun minne missä mistä mitä miten miksi
        montako mutta myös ne niin nyt oli olivat olla on ovat paljonko se sekä sen siellä sinä sitä tai te tämä tässä
        vai vain voi""",
    "hungarian": """a az azt be csak de egy el ez ezt és ha hány hogy hogyan hol hova honnan hát is itt ki kell kik
        kinek le lehet lesz ma már meg mely melyik mennyi mert mi miért mikor milyen mint mit mivel most nagyon nem
        nincs ott ő pedig sem számára szerint te után vagy van vannak volt""",
    "romanian": """a acest această al ale am ar are au avem ca care cât câte câți când ce cel cine cu cum da dar de din
        după e ea ei el este eu fi fost ia în îi îl la le lor lui mai mea meu mi ne noastră noi nostru nu o pe pentru
        prin sa sau se și sunt spre să ta te tu un unde unei unui va""",
    "indonesian": """ada adalah agar akan aku anda apa apakah atau bagaimana bagi bahwa bisa berapa dalam dan dapat
        dari dengan di dia hanya harus ini itu jika juga kami kamu kapan karena ke kenapa kepada kita lagi lebih mana
        mengapa mereka milik oleh pada para saat saja saya sangat sebagai sedang sebuah siapa sudah telah tetapi tidak
        untuk yang""",
    "vietnamese": """bạn bởi bị các cái cô có của cũng cùng để đã đang đâu đây đến được đó gì hơn họ không là lúc lại mà
        mấy một mình mọi này nào nên nó như những nhưng nhiêu ở rất rồi sẽ tại từ tôi thì thế trên trong và vào vẫn về
        vì với vậy ấy chúng phải nữa nếu bằng""",
}
_OTHER_WORDS = {
    "russian": """а без бы был была были было быть в вам вас весь во вот все всё всех вы где да для до его ее её если
        есть еще ещё же за зачем и из или им их к как какая какие какого какое какой каком какую ко когда кого кому кто
        куда ли меня мне много можно мой моя моего моей мы на над надо нам нас наш наша не него нее неё нет ни них но о
        об он она они оно от откуда по под после почему при с свой своя сколько со так там то тогда того тоже только ты
        у уж чего чей чем чему что чтобы это этого этой этот я або але був була було він вона де для до її його коли
        куди ми мене мені навіщо наш не немає про та так там ті це цей чи чому що щоб як яка яке який якого яку
        яким""",
    "greek": """από αυτή αυτό αυτός για δε δεν είναι είχε είχα εμείς ένα ένας έχει έχουν έχω η ήταν θα και κάθε με μας
        μέχρι μετά μη μην μου να ο οι όταν ότι πόσο πόσα πόσες πού ποια ποιο ποιον ποιος ποιους πότε πρέπει πριν προς
        πως πώς σας σε στα στη στην στις στο στον στους τα τη την της τι τις το τον του τους των χωρίς ως γιατί""",
    "arabic": """أن أو أي أين إلى إن التي الذي الذين بعد به بها بين تم ثم حتى خلال ذلك على عليه عن عند غير في فيه فيها
        قبل قد كان كانت كل كم كيف لا لذلك لقد لكن لم لماذا لن له لها ليس ما ماذا متى مع من منذ منها منه نحن هذا هذه هل
        هم هنا هناك هو هي و يكون""",
    "persian": """از است این آن با بر برای به تا چرا چقدر چند چه چیزی چگونه چطور خود در را شد شده کجا کدام که کند کنید
        کی می ما من نه هر هم و یا یک""",
    "hebrew": """אבל או אולי איזה איזו אילו אין איך איפה איתו אל אם אנחנו אני את אתה אתם באיזה באיזו בו בה גם היא היה
        היו הוא הם הן זאת זה זו יש כי כל כמה לא לאיזה לאיזו לאן לה להם לו לי לך למה לנו מה מאיפה מאיזה מדוע מי מתי עד
        עם על של שלה שלהם שלו שלי שלך שלנו""",
    "hindi": """अपना अपनी अपने आप इस इसे उस उसे उसका उसकी उसके एक ऐसा और कब कर करता करती करते करना करने कहाँ कहां का कि
        कितना कितनी कितने किस किसने किसे की के कैसे को कोई कौन कौनसा क्या क्यों गया गई गए जब जो तक तब तो था थी थे दिया
        ने नहीं पर बार भी मुझे में मेरा मेरी मेरे मैं यह या ये रहा रही रहे लिए वह वे से सा सी हम हमने हमारा हमारी हमारे
        ही हुआ हुई है हैं हो होता होती""",
}
_STOP_WORDS = {
    language: frozenset(unicodedata.normalize("NFKC", words).split())
    for language, words in (_LATIN_WORDS | _OTHER_WORDS).items()
}
_ASCII_WORD = regex("[a-z]+")
# Letters of few languages.
_LETTERS = {
    language: frozenset(letters)
    for language, letters in {
        "german": "äöüß",
        "french": "àâçèêëîïôùûœ",
        "spanish": "ñáíóú",
        "portuguese": "ãõçáâêôí",
        "italian": "àèìòù",
        "polish": "ąćęłńśźżó",
        "czech": "ěščřžýáíéůúťďň",
        "turkish": "ğışçöü",
        "swedish": "åäö",
        "danish": "æøå",
        "norwegian": "æøå",
        "finnish": "äö",
        "hungarian": "őűáéíóöúü",
        "romanian": "ăâîșțşţ",
        "vietnamese": "ăđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
    }.items()
}


class QueryForms(NamedTuple):
    """The stems of a query, and the function words of its languages as the tokenizer has them."""

    stems: list[str]
    stop_words: set[str]


def stems(text: str) -> list[str]:
    """Return the distinct marked stems of the words of a text without vowel points, in languages with endings."""
    return _stems_of(_words(text))


def query_forms(text: str) -> QueryForms:
    """Return the same of a query, with the words by which it does not search."""
    words = _words(text)
    stop_words = set[str]()
    for language in {language for language, _ in words}:
        own = _STOP_WORDS.get(language, ())
        stop_words.update(map(private, own) if language in _WITH_VOWEL_SIGNS else own)
    return QueryForms(_stems_of(words), stop_words)


def subject_of(text: str) -> str:
    """Return a query without its function words; all of it if it has no others."""
    stop_words = STOP_WORDS | query_forms(text).stop_words
    words = [(word, word.strip(_AROUND_WORDS).lower()) for word in CJK_FUNCTION_WORDS.sub(" ", text).split()]
    return " ".join(word for word, bare in words if not {bare, private(bare)} & stop_words) or text


def as_written(word: str) -> str:
    """Return a word of the index as a text has it: without a mark, and without letters of private use."""
    if word.isascii():
        return word
    word = word.removeprefix(_MARK)
    return "".join(_written(ord(letter)) if ord(letter) >= _PRIVATE else letter for letter in word)


def private(text: str) -> str:
    """Return a text in letters of private use, which the tokenizer keeps together."""
    return "".join(chr(_PRIVATE + (ord(letter) & _LOW)) for letter in text)


def _written(code: int) -> str:
    low = code & _LOW
    return chr(low + 0x10000 if low >= _FIRST_OF_PLANE_1 else low)


def _stems_of(words: Iterable[tuple[str, str]]) -> list[str]:
    return [*dict.fromkeys(stem for language, word in words if (stem := _stem(language, word)))]


def _words(text: str) -> list[tuple[str, str]]:
    """Return the languages and distinct words of a text that are not English."""
    if text.isascii() and _FOREIGN_WORDS.isdisjoint(text.lower().split()):
        return []
    if text.isascii():
        words = dict.fromkeys(_ASCII_WORD.findall(text.lower()))
        language = _latin_language(words)
        return [(language, word) for word in words] if language else []
    text = unicodedata.normalize("NFKC", text).replace("İ", "i").lower()
    # Distinct words only: a long text has millions of words, and few of them are distinct.
    words = dict.fromkeys((match.lastgroup or "", match.group()) for match in _WORD.finditer(text))
    latin = _latin_language([word for script, word in words if script == "latin"])
    persian = not _PERSIAN_LETTERS.isdisjoint(text)
    languages = {"latin": latin, "arabic": "persian" if persian else "arabic"}
    by_language = ((languages.get(script, script), word) for script, word in words)
    return [(language, word) for language, word in by_language if language]


def _latin_language(words: Iterable[str]) -> str:
    """Return the language that most of the words speak for; "" for English or none."""
    votes = Counter(chain.from_iterable(map(_languages_of, words)))
    best = max(votes, key=lambda language: (votes[language], -_LATIN.index(language)), default="english")
    return "" if best == "english" else best


def _languages_of(word: str) -> Iterable[str]:
    languages = _LANGUAGES_OF.get(word, ())
    if word.isascii():
        return languages
    return chain(languages, (language for language, letters in _LETTERS.items() if not letters.isdisjoint(word)))


def _stem(language: str, word: str) -> str:
    if language in _WITHOUT_ENDINGS or len(word) > _MAX_WORD or word in _STOP_WORDS.get(language, ()):
        return ""
    stem = _hebrew(word) if language == "hebrew" else _stemmer(language)(word)
    if len(stem) < _MIN_STEM:
        return ""
    return _MARK + (private(stem) if language in _WITH_VOWEL_SIGNS else stem.replace("ё", "е"))


def _hebrew(word: str) -> str:
    """Return a word without the endings of plural and gender, and without prefixed particles, as far as three letters
    are left.
    """
    for ending in ("ים", "ות", "ה"):
        if word.endswith(ending) and len(word) >= 3 + len(ending):
            word = word.removesuffix(ending)
            break
    for _ in range(2):
        if len(word) > 3 and word[0] in "והבלכמש":
            word = word[1:]
    return word


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    module: Any = Stemmer
    try:
        return module.Stemmer(language, 0).stemWord  # without a cache, which threads would share
    except KeyError as error:  # for want of memory: every language of this module is there
        raise MemoryError from error


def _by_word() -> dict[str, tuple[str, ...]]:
    languages: dict[str, tuple[str, ...]] = {}
    for language in _LATIN:
        for word in STOP_WORDS if language == "english" else _STOP_WORDS[language]:
            languages[word] = (*languages.get(word, ()), language)
    return languages


_LATIN = ("english", *_LATIN_WORDS)
_LANGUAGES_OF = _by_word()
_FOREIGN_WORDS = frozenset(_LANGUAGES_OF.keys() - STOP_WORDS)
