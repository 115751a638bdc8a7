"""Twelve unrelated facts in sixteen languages, each with a question in other words: `fact | question`."""

FACTS = """
# English
He is allergic to peanuts. | Which nuts can he not eat?
The printer has run out of paper. | Why is the printer not printing?
The flight to Tokyo was cancelled. | What happened to the plane to Tokyo?
The dog sleeps on the sofa at night. | Where does the dog spend the night?
The invoice from the plumber was paid on Monday. | When did we pay the plumber's bill?
Tomatoes grow on the south balcony. | Which vegetables are planted on the balcony?
The database is backed up every night. | How often is a backup of the database made?
Our mother has her birthday in May. | In which month was mother born?
The neighbour practises the violin after dinner. | Which instrument does the neighbour play?
The car needs new winter tyres. | What has to be bought for the car?
Passwords must be changed every three months. | How long is a password valid?
Her favourite film is about a lighthouse keeper. | What is the film about that she loves most?

# German
Er ist allergisch gegen Erdnüsse. | Welche Nüsse verträgt er nicht, wogegen ist er allergisch?
Im Drucker ist kein Papier mehr. | Warum druckt der Drucker nicht?
Der Flug nach Tokio wurde gestrichen. | Was ist mit dem Flug nach Tokio passiert?
Der Hund schläft nachts auf dem Sofa. | Wo schläft der Hund?
Die Rechnung des Klempners wurde am Montag bezahlt. | Wann haben wir die Rechnung vom Klempner beglichen?
Auf dem Balkon im Süden wachsen Tomaten. | Welches Gemüse wächst auf dem Balkon?
Die Datenbank wird jede Nacht gesichert. | Wie oft wird die Datenbank gesichert?
Unsere Mutter hat im Mai Geburtstag. | Wann hat Mutter Geburtstag?
Der Nachbar übt nach dem Abendessen Geige. | Welches Instrument übt der Nachbar?
Das Auto braucht neue Winterreifen. | Was braucht das Auto vor dem Winter?
Passwörter müssen alle drei Monate geändert werden. | Wie oft sind Passwörter zu ändern?
Ihr Lieblingsfilm handelt von einem Leuchtturmwärter. | Wovon handelt ihr liebster Film, ihr Lieblingsfilm?

# French
Il est allergique aux cacahuètes. | À quoi est-il allergique ?
L'imprimante n'a plus de papier. | Pourquoi l'imprimante n'imprime-t-elle pas ?
Le vol pour Tokyo a été annulé. | Que s'est-il passé avec le vol de Tokyo ?
Le chien dort la nuit sur le canapé. | Où dort le chien ?
La facture du plombier a été payée lundi. | Quand avons-nous réglé la facture du plombier ?
Des tomates poussent sur le balcon sud. | Quels légumes poussent sur le balcon ?
La base de données est sauvegardée chaque nuit. | Quand la base de données est-elle sauvegardée ?
Notre mère fête son anniversaire en mai. | Quand est l'anniversaire de notre mère ?
Le voisin joue du violon après le dîner. | De quel instrument joue le voisin ?
La voiture a besoin de pneus d'hiver. | De quoi la voiture a-t-elle besoin ?
Les mots de passe changent tous les trois mois. | Combien de temps un mot de passe est-il valable ?
Son film préféré parle d'un gardien de phare. | De quoi parle son film préféré ?

# Spanish
Es alérgico a los cacahuetes. | ¿A qué es alérgico?
La impresora se quedó sin papel. | ¿Por qué no imprime la impresora?
El vuelo a Tokio fue cancelado. | ¿Qué pasó con el vuelo a Tokio?
El perro duerme de noche en el sofá. | ¿Dónde duerme el perro?
La factura del fontanero se pagó el lunes. | ¿Cuándo pagamos la factura al fontanero?
En el balcón sur crecen tomates. | ¿Qué verduras crecen en el balcón?
La base de datos se copia todas las noches. | ¿Cada cuánto se copia la base de datos?
Nuestra madre cumple años en mayo. | ¿Cuándo cumple años nuestra madre?
El vecino toca el violín después de cenar. | ¿Qué instrumento toca el vecino?
El coche necesita neumáticos de invierno. | ¿Qué necesita el coche?
Las contraseñas se cambian cada tres meses. | ¿Cada cuánto se cambian las contraseñas?
Su película favorita trata de un farero. | ¿De qué trata su película favorita?

# Polish
On ma alergię na orzeszki ziemne. | Na co on ma alergię?
W drukarce skończył się papier. | Dlaczego drukarka nie drukuje, brak papieru w drukarce?
Lot do Tokio został odwołany. | Co się stało z lotem do Tokio?
Pies śpi nocą na kanapie. | Gdzie śpi pies?
Rachunek hydraulika zapłacono w poniedziałek. | Kiedy zapłacono rachunek za hydraulika?
Na południowym balkonie rosną pomidory. | Jakie warzywa rosną na balkonie?
Baza danych jest kopiowana każdej nocy. | Jak często kopiowana jest baza danych?
Nasza mama ma urodziny w maju. | Kiedy mama ma urodziny?
Sąsiad ćwiczy na skrzypcach po kolacji. | Na jakim instrumencie ćwiczy sąsiad?
Samochód potrzebuje opon zimowych. | Czego potrzebuje samochód?
Hasła trzeba zmieniać co trzy miesiące. | Jak często trzeba zmieniać hasła?
Jej ulubiony film opowiada o latarniku. | O czym opowiada jej ulubiony film?

# Turkish
Onun yer fıstığına alerjisi var. | Onun neye alerjisi var?
Yazıcıda kağıt bitti. | Yazıcıda ne bitti?
Tokyo uçuşu iptal edildi. | Tokyo uçuşuna ne oldu?
Köpek geceleri kanepede uyuyor. | Köpek nerede uyuyor?
Tesisatçının faturası pazartesi ödendi. | Tesisatçının faturası ne zaman ödendi?
Güney balkonunda domates yetişiyor. | Balkonda hangi sebze, domates mi yetişiyor?
Veritabanı her gece yedekleniyor. | Veritabanı ne sıklıkla yedekleniyor?
Annemizin doğum günü mayısta. | Annemizin doğum günü ne zaman?
Komşu akşam yemeğinden sonra keman çalıyor. | Komşu hangi çalgıyı çalıyor?
Arabanın kış lastiğine ihtiyacı var. | Arabanın neye ihtiyacı var?
Parolalar üç ayda bir değiştirilmeli. | Parolalar ne zaman değiştirilmeli?
En sevdiği film bir deniz feneri bekçisini anlatıyor. | En sevdiği film neyi anlatıyor?

# Russian
У него аллергия на арахис. | На что у него аллергия?
В принтере закончилась бумага. | Почему принтер не печатает, что закончилось?
Рейс в Токио отменили. | Что случилось с рейсом в Токио?
Собака спит ночью на диване. | Где спит собака?
Счёт сантехника оплатили в понедельник. | Когда оплатили счёт сантехника?
На южном балконе растут помидоры. | Какие овощи растут на балконе?
Базу данных копируют каждую ночь. | Как часто копируют базу данных?
День рождения мамы в мае. | Когда у мамы день рождения?
Сосед играет на скрипке после ужина. | На чём играет сосед?
Машине нужны зимние шины. | Что нужно машине, какие шины?
Пароли надо менять каждые три месяца. | Как часто надо менять пароли?
Её любимый фильм о смотрителе маяка. | О чём её любимый фильм?

# Ukrainian
У нього алергія на арахіс. | На що в нього алергія?
У принтері закінчився папір. | Що закінчилося у принтері, чому він не друкує?
Рейс до Токіо скасували. | Що сталося з рейсом до Токіо?
Собака спить уночі на дивані. | Де спить собака?
Рахунок сантехніка сплатили в понеділок. | Коли сплатили рахунок сантехніка?
На південному балконі ростуть помідори. | Які овочі ростуть на балконі?
Базу даних копіюють щоночі. | Як часто копіюють базу даних?
День народження мами у травні. | Коли в мами день народження?
Сусід грає на скрипці після вечері. | На чому грає сусід?
Машині потрібні зимові шини. | Що потрібно машині, які шини?
Паролі треба змінювати кожні три місяці. | Як часто треба змінювати паролі?
Її улюблений фільм про доглядача маяка. | Про що її улюблений фільм?

# Greek
Είναι αλλεργικός στα φιστίκια. | Σε τι είναι αλλεργικός;
Το χαρτί του εκτυπωτή τελείωσε. | Τι τελείωσε στον εκτυπωτή;
Η πτήση για το Τόκιο ακυρώθηκε. | Τι έγινε με την πτήση για το Τόκιο;
Ο σκύλος κοιμάται τη νύχτα στον καναπέ. | Πού κοιμάται ο σκύλος;
Ο λογαριασμός του υδραυλικού πληρώθηκε τη Δευτέρα. | Πότε πληρώθηκε ο λογαριασμός του υδραυλικού;
Στο νότιο μπαλκόνι μεγαλώνουν ντομάτες. | Τι λαχανικά μεγαλώνουν στο μπαλκόνι;
Η βάση δεδομένων αντιγράφεται κάθε βράδυ. | Πόσο συχνά αντιγράφεται η βάση δεδομένων;
Η μητέρα μας έχει γενέθλια τον Μάιο. | Πότε έχει γενέθλια η μητέρα;
Ο γείτονας παίζει βιολί μετά το δείπνο. | Τι όργανο παίζει ο γείτονας;
Το αυτοκίνητο χρειάζεται χειμερινά λάστιχα. | Τι χρειάζεται το αυτοκίνητο;
Οι κωδικοί αλλάζουν κάθε τρεις μήνες. | Πότε αλλάζουν οι κωδικοί;
Η αγαπημένη της ταινία μιλά για έναν φαροφύλακα. | Για τι μιλά η αγαπημένη της ταινία;

# Arabic
لديه حساسية من الفول السوداني. | ما نوع حساسية الطعام لديه؟
نفد الورق من الطابعة. | لماذا لا تعمل الطابعة، هل نفد الورق؟
ألغيت الرحلة إلى طوكيو. | ماذا حدث مع الرحلة إلى طوكيو؟
ينام الكلب ليلا على الأريكة. | أين ينام الكلب؟
دفعت فاتورة السباك يوم الاثنين. | متى دفعت فاتورة السباك؟
تنمو الطماطم على الشرفة الجنوبية. | أي خضروات تنمو على الشرفة؟
تنسخ قاعدة البيانات كل ليلة. | متى تنسخ قاعدة البيانات؟
عيد ميلاد أمنا في مايو. | متى عيد ميلاد أمنا؟
يعزف الجار على الكمان بعد العشاء. | على أي آلة يعزف الجار؟
تحتاج السيارة إلى إطارات شتوية. | إلى ماذا تحتاج السيارة؟
يجب تغيير كلمات المرور كل ثلاثة أشهر. | متى يجب تغيير كلمات المرور؟
فيلمها المفضل عن حارس منارة. | عن ماذا يدور فيلمها المفضل؟

# Hebrew
הוא אלרגי לבוטנים. | למה הוא אלרגי?
נגמר הנייר במדפסת. | מה נגמר במדפסת?
הטיסה לטוקיו בוטלה. | מה קרה עם הטיסה לטוקיו?
הכלב ישן בלילה על הספה. | איפה ישן הכלב?
חשבון האינסטלטור שולם ביום שני. | מתי שולם חשבון האינסטלטור?
במרפסת הדרומית גדלות עגבניות. | אילו ירקות גדלים במרפסת?
מסד הנתונים מגובה בכל לילה. | מתי מגובה מסד הנתונים?
יום ההולדת של אמא במאי. | מתי יום ההולדת של אמא?
השכן מנגן בכינור אחרי ארוחת הערב. | במה מנגן השכן?
המכונית צריכה צמיגי חורף. | מה צריכה המכונית?
סיסמאות יש להחליף כל שלושה חודשים. | מתי יש להחליף סיסמאות?
הסרט האהוב עליה עוסק בשומר מגדלור. | במה עוסק הסרט האהוב עליה?

# Hindi
उसे मूंगफली से एलर्जी है। | उसे किस चीज़ से एलर्जी है?
प्रिंटर में कागज़ खत्म हो गया। | प्रिंटर में क्या खत्म हुआ?
टोक्यो की उड़ान रद्द हो गई। | टोक्यो की उड़ान का क्या हुआ?
कुत्ता रात को सोफे पर सोता है। | कुत्ता कहाँ सोता है?
प्लंबर का बिल सोमवार को चुकाया गया। | प्लंबर का बिल कब चुकाया गया?
दक्षिणी बालकनी में टमाटर उगते हैं। | बालकनी में कौन सी सब्ज़ी उगती है?
डेटाबेस का बैकअप हर रात होता है। | डेटाबेस का बैकअप कब होता है?
हमारी माँ का जन्मदिन मई में है। | माँ का जन्मदिन कब है?
पड़ोसी खाने के बाद वायलिन बजाता है। | पड़ोसी कौन सा बाजा बजाता है?
गाड़ी को नए टायर चाहिए। | गाड़ी को क्या चाहिए?
पासवर्ड हर तीन महीने में बदलना होगा। | पासवर्ड कितने दिन में बदलना होगा?
उसकी पसंदीदा फ़िल्म एक दीपस्तंभ के बारे में है। | उसकी पसंदीदा फ़िल्म किस बारे में है?

# Thai
เขาแพ้ถั่วลิสง | เขาแพ้อาหารอะไร แพ้ถั่วไหม
กระดาษในเครื่องพิมพ์หมดแล้ว | ทำไมเครื่องพิมพ์ไม่ทำงาน
เที่ยวบินไปโตเกียวถูกยกเลิก | เกิดอะไรขึ้นกับเที่ยวบินโตเกียว
สุนัขนอนบนโซฟาตอนกลางคืน | สุนัขนอนที่ไหน
จ่ายบิลช่างประปาเมื่อวันจันทร์ | จ่ายเงินช่างประปาวันไหน
มะเขือเทศเติบโตที่ระเบียงทิศใต้ | ผักอะไรอยู่ที่ระเบียง
ฐานข้อมูลสำรองไว้ทุกคืน | สำรองฐานข้อมูลบ่อยแค่ไหน
วันเกิดของแม่อยู่ในเดือนพฤษภาคม | แม่เกิดเดือนไหน วันเกิดแม่
เพื่อนบ้านเล่นไวโอลินหลังอาหารเย็น | เพื่อนบ้านเล่นเครื่องดนตรีอะไร
รถต้องใช้ยางใหม่สำหรับฤดูหนาว | รถต้องใช้อะไรใหม่
ต้องเปลี่ยนรหัสผ่านทุกสามเดือน | รหัสผ่านใช้ได้นานเท่าไร
ภาพยนตร์ที่เธอชอบเกี่ยวกับคนเฝ้าประภาคาร | ภาพยนตร์เรื่องโปรดของเธอเกี่ยวกับอะไร

# Korean
그는 땅콩 알레르기가 있다. | 그는 무슨 알레르기가 있지?
프린터에 종이가 떨어졌다. | 프린터가 왜 안 되지, 종이가 없나?
도쿄행 비행기가 취소되었다. | 도쿄 비행기는 어떻게 되었나?
개는 밤에 소파에서 잔다. | 개는 어디에서 자나, 소파인가?
배관공 청구서는 월요일에 냈다. | 배관공에게 언제 돈을 냈지?
남쪽 발코니에서 토마토가 자란다. | 발코니에 무슨 채소가 자라지?
데이터베이스는 매일 밤 백업된다. | 데이터베이스 백업은 언제 하나?
어머니 생신은 오월이다. | 어머니 생신이 언제지?
이웃은 저녁 식사 후 바이올린을 연습한다. | 이웃이 연습하는 악기는 무엇인가?
자동차에 겨울용 타이어가 필요하다. | 자동차에 무엇이 필요하지?
비밀번호는 석 달마다 바꿔야 한다. | 비밀번호를 얼마나 자주 바꿔야 하지?
그녀가 좋아하는 영화는 등대지기 이야기다. | 그녀가 좋아하는 영화는 무슨 이야기지?

# Japanese
彼はピーナッツにアレルギーがある。 | 彼は何のアレルギーですか。
プリンターの紙がなくなった。 | プリンターで何がなくなったの。
東京行きの便は欠航になった。 | 東京行きの飛行機はどうなった。
犬は夜ソファで寝る。 | 犬はどこで寝るの。
配管工の請求書は月曜日に払った。 | 配管工にいつ払ったの。
南のベランダでトマトが育っている。 | ベランダで育つ野菜は何。
データベースは毎晩バックアップされる。 | データベースのバックアップはいつ。
母の誕生日は五月だ。 | 母の誕生日はいつ。
隣人は夕食後にバイオリンを弾く。 | 隣人が弾く楽器は何。
車には冬用のタイヤが必要だ。 | 車に必要なものは何。
パスワードは三か月ごとに変える。 | パスワードはいつ変えるの。
彼女の好きな映画は灯台守の話だ。 | 彼女の好きな映画は何の話。

# Chinese
他对花生过敏。 | 他对什么食物过敏？
打印机没有纸了。 | 打印机为什么不工作？
飞往东京的航班取消了。 | 东京的航班怎么样了？
狗晚上睡在沙发上。 | 狗在哪里睡觉，沙发还是床？
水管工的账单星期一付了。 | 水管工的账单什么时候付的？
南边的阳台上种着番茄。 | 阳台上种了什么蔬菜？
数据库每天夜里备份。 | 数据库多久备份一次？
我们母亲的生日在五月。 | 母亲的生日是几月？
邻居晚饭后拉小提琴。 | 邻居会什么乐器，小提琴吗？
汽车需要冬季轮胎。 | 汽车需要买什么？
密码每三个月必须更换。 | 密码多久更换一次？
她最喜欢的电影讲一个灯塔看守人。 | 她最喜欢的电影讲什么？
"""


def languages() -> dict[str, list[tuple[str, str]]]:
    """The facts of each language with their questions."""
    found: dict[str, list[tuple[str, str]]] = {}
    for block in FACTS.strip().split("\n\n"):
        name, *lines = block.splitlines()
        pairs = (line.split(" | ") for line in lines)
        found[name.removeprefix("# ")] = [(fact, question) for fact, question in pairs]
    return found
